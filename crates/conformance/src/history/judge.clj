; Asks Elle for its verdict on histories.
; Arguments: rw-register or list-append, a consistency model, files with an operation a line.
; Prints for each file: its name, a tab, true or false or :unknown, a tab, the anomalies found.
(require '[clojure.edn :as edn] '[clojure.java.io :as io]
         '[elle.list-append :as list-append] '[elle.rw-register :as rw-register]
         '[jepsen.history :as history])

(let [[kind model & files] *command-line-args*
      check   (if (= kind "rw-register") rw-register/check list-append/check)
      ; A register says nothing about its older versions. Most clients read a key before they write it.
      options {:consistency-models [(keyword model)] :wfr-keys? true}]
  (doseq [file files]
    (let [operations (with-open [reader (io/reader file)]
                       (mapv edn/read-string (line-seq reader)))
          verdict    (check options (history/history operations))]
      (println (str file "\t" (:valid? verdict) "\t" (vec (:anomaly-types verdict))))
      (flush)))
  (shutdown-agents))
