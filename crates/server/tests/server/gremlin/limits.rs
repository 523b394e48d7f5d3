//! Time limits, sizes, garbage, disconnecting clients, and the shutdown of the server.

use super::client::{Client, ENDLESS, ENDLESS_RESULTS, args, bytecode, bytecode_args, modern};
use crate::common::{Reply, Running, request};
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use tungstenite::Message;
use tungstenite::protocol::frame::coding::CloseCode;
use vervet::gremlin::Value;
use vervet_tinkerpop::{Data, Format};

/// The close code in the server's close frame.
fn last(client: &mut Client) -> Option<CloseCode> {
    loop {
        match client.socket.read() {
            Ok(Message::Close(frame)) => return frame.map(|frame| frame.code),
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}

#[test]
fn a_traversal_has_a_time_limit() {
    let server = Running::start(&modern(), |options| options.limits.timeout = Duration::from_millis(300));
    let mut client = Client::new(&server, Format::GraphBinary1);
    client.eval(ENDLESS).refused(598, "0.3 s");
    client.in_session("s", ENDLESS).refused(598, "0.3 s");
    // A request may ask for less time, but not for more.
    for wished in [20, 100_000, 0] {
        let wish = args([("gremlin", ENDLESS.into()), ("evaluationTimeout", wished.into())]);
        client.ask("eval", "", wish).refused(598, "");
    }
    client.eval("g.with('evaluationTimeout', 20).inject(1).repeat(identity())").refused(598, "");
    client.ask("bytecode", "traversal", bytecode_args(bytecode(ENDLESS))).refused(598, "");
    // A write that exceeds its deadline leaves no changes, here or in a session.
    let write = "g.addV('new').repeat(identity())";
    client.eval(write).refused(598, "");
    client.in_session("s", write).refused(598, "");
    client.in_session("s", "g.tx().commit()").values();
    assert_eq!(client.eval("g.V().hasLabel('new').count()").values(), [Value::from(0_i64)]);
    // After results have been sent, the error follows them.
    let answer = client.eval(ENDLESS_RESULTS);
    assert_eq!((answer.0[0].status.code, answer.code()), (206, 598));
    server.wait_for("vervet_requests_running", 0.0);
}

#[test]
fn a_traversal_has_a_memory_limit() {
    let server = Running::start(&modern(), |options| options.limits.memory_bytes = 1 << 20);
    let mut client = Client::new(&server, Format::GraphBinary1);
    client.eval("g.inject(1).repeat(identity()).emit().fold()").refused(500, "--memory");
    client.eval("g.V().count()").values();
}

#[test]
fn repeated_results_observe_the_deadline() {
    let server = Running::start(&modern(), |_| {});
    let mut client = Client::new(&server, Format::GraphBinary1);
    let text = "g.V().repeat(both()).times(40).constant(1).barrier()";
    let answer = client.bytecode(text);
    assert_eq!(answer.code(), 200, "{}", answer.message());
    let Data::Traversers(traversers) = &answer.0[0].data else { panic!("{answer:?}") };
    assert!(traversers[0].bulk > 1 << 40, "{traversers:?}");
    let limited = args([("gremlin", text.into()), ("evaluationTimeout", 500.into())]);
    client.ask("eval", "", limited).refused(598, "");
}

#[test]
fn messages_have_a_size_limit() {
    let server = Running::start(&modern(), |options| options.limits.text_bytes = 2000);
    let mut client = Client::new(&server, Format::GraphSon3);
    client.eval(&format!("g.inject('{}')", "x".repeat(1000))).values();
    let id = client.send("eval", "", args([("gremlin", format!("g.inject('{}')", "x".repeat(3000)).into())]));
    assert_eq!(last(&mut client), Some(CloseCode::Size), "{id}");
    // The same in fragments.
    let mut client = Client::new(&server, None);
    for n in 0..5 {
        let kind = if n == 0 { 0x01 } else { 0x00 };
        let mut frame = vec![kind, 0x80 | 126, 0x03, 0xe8, 0, 0, 0, 0];
        frame.extend_from_slice(&[b' '; 1000]);
        if client.socket.get_mut().write_all(&frame).is_err() {
            break;
        }
    }
    assert_eq!(last(&mut client), Some(CloseCode::Size));
    Client::new(&server, None).eval("g.V().count()").values();
}

#[test]
fn malformed_requests_get_errors_and_the_connection_continues() {
    let server = Running::start(&modern(), |_| ());
    for (message, code, words) in [
        (Message::text("{"), 498, "byte"),
        (Message::text("hello"), 498, "byte 0"),
        (Message::text("{\"op\":\"eval\"}"), 498, "requestId"),
        (Message::text("[]".repeat(10)), 498, "byte"),
        (Message::text(format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))), 498, "byte"),
    ] {
        let mut client = Client::new(&server, None);
        client.socket.send(message).expect("it is sent");
        let response = client.receive();
        assert_eq!((response.status.code, response.id), (code, None), "{}", response.status.message);
        assert!(response.status.message.contains(words), "{}", response.status.message);
        client.eval("g.V().count()").values();
    }
    for (bytes, code, words) in [
        (&b""[..], 498, "empty frame"),
        (b"\x05", 498, "MIME type"),
        (b"\x04text{}", 497, "text"),
        (b"\x10application/json", 498, "byte"),
        (b"\x10application/json{", 498, "byte"),
    ] {
        let mut client = Client::new(&server, Format::GraphSon3);
        client.socket.send(Message::binary(bytes)).expect("it is sent");
        // In the request's own format, if it could be determined.
        let message = client.socket.read().expect("a message comes");
        let text = String::from_utf8(message.into_data().to_vec()).expect("JSON");
        assert!(text.contains(&format!("\"code\":{code}")) && text.contains(words), "{text}");
        client.eval("g.V().count()").values();
    }
    // Random bytes behind the name of a binary format.
    let mut random = fastrand::Rng::with_seed(7);
    let mut client = Client::new(&server, Format::GraphBinary1);
    for _ in 0..500 {
        let mut frame = Vec::new();
        Format::GraphBinary1.begin_frame(&mut frame);
        frame.push(0x81);
        frame.extend((0..random.usize(0..60)).map(|_| random.u8(..)));
        client.socket.send(Message::binary(frame)).expect("it is sent");
        assert!(matches!(client.receive().status.code, 497..=499));
    }
    client.eval("g.V().count()").values();
}

/// Invalid frames end the connection, each with its close code.
#[test]
fn invalid_frames_close_the_connection() {
    let server = Running::start(&modern(), |_| ());
    let long_ping = [&b"\x89\xfe\x00\x80\0\0\0\0"[..], &[0; 128]].concat();
    for (bytes, code) in [
        // Unmasked; with an unknown opcode; a text that is not UTF-8; a ping that is too long.
        (&b"\x81\x02hi"[..], CloseCode::Protocol),
        (b"\x83\x80\0\0\0\0", CloseCode::Protocol),
        (b"\x81\x82\0\0\0\0\xff\xff", CloseCode::Invalid),
        (&long_ping, CloseCode::Protocol),
    ] {
        let mut client = Client::new(&server, None);
        client.socket.get_mut().write_all(bytes).expect("it is sent");
        assert_eq!(last(&mut client), Some(code), "{bytes:?}");
    }
    server.wait_for("vervet_connections", 1.0);
}

#[test]
fn pings_are_answered() {
    let server = Running::start(&modern(), |_| ());
    let mut client = Client::new(&server, None);
    client.socket.send(Message::Ping("hello".into())).expect("it is sent");
    assert_eq!(client.socket.read().expect("it comes"), Message::Pong("hello".into()));
    client.socket.close(None).expect("it is sent");
    assert_eq!(last(&mut client), None);
    server.wait_for("vervet_connections", 1.0);
}

/// A traversal ends when its client disconnects, whether it is sending results or has sent nothing yet.
#[test]
fn disconnecting_cancels_traversals() {
    let server = Running::start(&modern(), |_| ());
    for (text, politely) in
        [(ENDLESS, false), (ENDLESS, true), (ENDLESS_RESULTS, false), (ENDLESS_RESULTS, true)]
    {
        let mut client = Client::new(&server, Format::GraphBinary1);
        client.send("eval", "", args([("gremlin", text.into())]));
        client.send("eval", "session", args([("gremlin", text.into()), ("session", "s".into())]));
        if text == ENDLESS_RESULTS {
            for _ in 0..100 {
                assert_eq!(client.receive().status.code, 206);
            }
        }
        server.wait_for("vervet_requests_running", 2.0);
        if politely {
            client.socket.close(None).expect("it is sent");
        }
        drop(client);
        server.wait_for("vervet_requests_running", 0.0);
        server.wait_for("vervet_gremlin_sessions", 0.0);
    }
    server.wait_for("vervet_connections", 1.0);
}

/// A client that requests much and reads nothing holds a thread only for a limited time, and its results are
/// not buffered.
#[test]
fn slow_readers_end_their_request() {
    let server =
        Running::start(&modern(), |options| options.limits.write_timeout = Duration::from_millis(300));
    let mut client = Client::new(&server, Format::GraphBinary1);
    client.send("eval", "", args([("gremlin", ENDLESS_RESULTS.into())]));
    assert_eq!(client.receive().status.code, 206);
    server.wait_for("vervet_requests_running", 1.0);
    server.wait_for("vervet_requests_running", 0.0);
    server.wait_for("vervet_connections", 1.0);
}

/// The write timeout is 30 s.
#[test]
fn a_request_whose_client_does_not_read_can_be_stopped() {
    let server = Running::start(&modern(), |_| ());
    let mut client = Client::new(&server, Format::GraphBinary1);
    let id = client.send("eval", "", args([("gremlin", ENDLESS_RESULTS.into())]));
    server.wait_for("vervet_requests_running", 1.0);
    server.wait_for_full_buffers();
    let list = server.get("/api/queries", &[]).expect(200).json();
    let begin = Instant::now();
    server.send("DELETE", &format!("/api/queries/{}", list["queries"][0]["id"]), &[], b"").expect(204);
    server.wait_for("vervet_requests_running", 0.0);
    assert!(begin.elapsed() < Duration::from_secs(10), "it took {:?}", begin.elapsed());
    // Once the client reads again, it learns what became of its request.
    client.answer(id).refused(596, "");
}

/// Requests that are dropped with their connection are no errors of the server.
#[test]
fn requests_of_a_client_that_is_gone_are_not_reported_as_defects() {
    let server = Running::start(&modern(), |options| {
        options.limits.requests = 1;
        options.limits.heavy_requests = 1;
    });
    let mut client = Client::new(&server, Format::GraphBinary1);
    for _ in 0..20 {
        client.send("eval", "", args([("gremlin", ENDLESS.into())]));
        client.send("eval", "session", args([("gremlin", ENDLESS.into()), ("session", "s".into())]));
    }
    server.wait_for("vervet_requests_running", 1.0);
    drop(client);
    server.wait_for("vervet_requests_running", 0.0);
    server.wait_for("vervet_connections", 1.0);
    let metrics = server.get("/metrics", &[]).expect(200).text();
    assert!(metrics.contains("kind=\"gremlin\",status=\"596\""), "{metrics}");
    assert!(!metrics.contains("kind=\"gremlin\",status=\"500\""), "{metrics}");
}

#[test]
fn slow_messages_close_the_connection() {
    let server = Running::start(&modern(), |options| {
        options.limits.body_timeout = Duration::from_millis(200);
        options.limits.idle_timeout = Duration::from_millis(1500);
    });
    let begin = Instant::now();
    let mut slow = Client::new(&server, None);
    slow.socket.get_mut().write_all(b"\x81\xfe\x01\x00\0\0\0\0{\"requ").expect("it is sent");
    // An idle connection without a partial message has a longer timeout.
    let mut idle = Client::new(&server, None);
    assert_eq!(last(&mut slow), Some(CloseCode::Policy));
    assert_eq!(last(&mut idle), Some(CloseCode::Away));
    assert!(begin.elapsed() >= Duration::from_millis(1500));
}

#[test]
fn a_server_that_ends_finishes_what_runs() {
    let server = Running::start(&modern(), |_| ());
    let mut client = Client::new(&server, Format::GraphBinary1);
    let mut idle = Client::new(&server, Format::GraphBinary1);
    idle.in_session("s", "g.addV('new')").values();
    let slow = args([("gremlin", ENDLESS.into()), ("evaluationTimeout", 500.into())]);
    let id = client.send("eval", "", slow);
    server.wait_for("vervet_requests_running", 1.0);
    server.stopper.stop();
    client.answer(id).refused(598, "");
    assert_eq!(last(&mut client), Some(CloseCode::Away));
    assert_eq!(last(&mut idle), Some(CloseCode::Away));
    server.join();
}

#[test]
fn shutdown_cancels_long_traversals() {
    let server = Running::start(&modern(), |options| {
        options.limits.shutdown_timeout = Duration::from_millis(100);
    });
    let mut client = Client::new(&server, Format::GraphBinary1);
    let id = client.send("eval", "", args([("gremlin", ENDLESS.into())]));
    let session = args([("gremlin", ENDLESS.into()), ("session", "s".into())]);
    let in_session = client.send("eval", "session", session);
    server.wait_for("vervet_requests_running", 2.0);
    server.stopper.stop();
    for id in [id, in_session] {
        client.answer(id).refused(596, "the server is ending");
    }
    assert_eq!(last(&mut client), Some(CloseCode::Away));
    server.join();
}

#[test]
fn running_requests_have_a_limit() {
    let server = Running::start(&modern(), |options| {
        options.limits.requests = 1;
        options.limits.heavy_requests = 1;
        options.limits.queue_timeout = Duration::from_millis(50);
    });
    let mut client = Client::new(&server, Format::GraphBinary1);
    let first =
        client.send("eval", "", args([("gremlin", ENDLESS.into()), ("evaluationTimeout", 2000.into())]));
    server.wait_for("vervet_heavy_requests_running", 1.0);
    client.eval(ENDLESS).refused(596, "try again later");
    client.in_session("s", ENDLESS).refused(596, "try again later");
    client.answer(first).refused(598, "");
    client.in_session("s", "g.V()").values();
}

#[test]
fn handshakes_are_validated() {
    let server = Running::start(&modern(), |_| ());
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    let version = "Sec-WebSocket-Version: 13";
    let ask = |headers: &[&str]| {
        let mut stream = server.connect();
        let text = format!("GET /gremlin HTTP/1.1\r\nHost: localhost\r\n{}\r\n\r\n", headers.join("\r\n"));
        stream.write_all(text.as_bytes()).expect("it is sent");
        let mut answer = vec![0; 12];
        stream.read_exact(&mut answer).expect("an answer");
        let mut rest = [0; 1000];
        let length = stream.read(&mut rest).expect("an answer");
        answer.extend_from_slice(&rest[..length]);
        String::from_utf8(answer).expect("a head")
    };
    // The example of RFC 6455.
    let answer = ask(&["Connection: keep-alive, Upgrade", "Upgrade: WebSocket", key, version]);
    assert!(
        answer.starts_with("HTTP/1.1 101") && answer.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        "{answer}"
    );
    for (headers, status) in [
        (vec!["Connection: Upgrade", "Upgrade: websocket", key, "Sec-WebSocket-Version: 8"], "426"),
        (vec!["Connection: Upgrade", "Upgrade: websocket", key], "426"),
        (vec!["Connection: Upgrade", "Upgrade: websocket", version], "400"),
        (vec!["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x", version], "400"),
        (vec!["Upgrade: websocket", key, version], "400"),
    ] {
        let answer = ask(&headers);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{headers:?}: {answer}");
    }
    let headers = ["Upgrade: websocket", key, version];
    let mut stream = server.connect();
    stream.write_all(&request("POST", "/gremlin", &headers, b"{}")).expect("it is sent");
    Reply::read(stream, false).expect(405);
    // Frames sent together with the handshake are not lost.
    let mut stream = server.connect();
    let mut bytes =
        format!("GET /gremlin HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{key}\r\n{version}\r\n\r\n")
            .into_bytes();
    bytes.extend_from_slice(b"\x89\x82\0\0\0\0hi");
    stream.write_all(&bytes).expect("it is sent");
    let mut answer = Vec::new();
    while !answer.ends_with(b"\x8a\x02hi") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("an answer");
        answer.push(byte[0]);
    }
}

/// Results that are complete wait for a client that does not read: the end of the server does not.
/// Responses are sent by a task (fast path), by a light thread, or, if they are too long to be buffered, by a
/// heavy thread while the traversal runs.
#[test]
fn unread_results_do_not_delay_the_end() {
    for (known_as_short, times, requests) in [(true, 8, 250), (false, 8, 250), (false, 9, 125)] {
        let server = Running::start(&modern(), |options| {
            options.limits.shutdown_timeout = Duration::from_millis(100);
        });
        let mut client = Client::new(&server, Format::GraphBinary1);
        // 64 MB, more than the buffers of a connection hold: 32 MB to receive and 4 MB to send on Linux.
        let text = "x".repeat(1000);
        let text = format!("g.inject('{text}').repeat(union(identity(), identity())).times({times})");
        if known_as_short {
            client.eval(&text).values();
        }
        for _ in 0..requests {
            client.send("eval", "", args([("gremlin", text.as_str().into())]));
        }
        if times == 8 {
            server.wait_for_ended_gremlin_requests(requests + usize::from(known_as_short));
        } else {
            server.wait_for_full_buffers();
        }
        let begin = Instant::now();
        server.stopper.stop();
        server.join();
        assert!(begin.elapsed() < Duration::from_secs(4), "times({times}): it took {:?}", begin.elapsed());
    }
}
