{{- define "vervet.labels" -}}
app.kubernetes.io/name: vervet
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "vervet.scheme" -}}
{{ if .Values.tls.secretName }}https{{ else }}http{{ end }}
{{- end }}

{{- define "vervet.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
