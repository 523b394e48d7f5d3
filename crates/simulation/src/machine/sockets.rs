//! The network: TCP between nodes.
//!
//! # Shape
//! A node listens at addresses of its choice; the host of an address has no meaning but to tell nodes apart.
//! Bytes that one end sends arrive at the other after the latency of the link, in order. A link is one
//! direction between two nodes: while it is cut, bytes wait, as those that are sent again and again do, and
//! connections are not made. A node that is killed resets its connections; one that loses power says nothing,
//! and what is sent to it is lost.
//! # Descriptors
//! A socket has a real descriptor, of `/dev/null`, so that its number is its own.

use super::kernel::{call, error, result};
use super::scheduler::{Guard, Node, Woken, World, is_inside, world};
use libc::{
    c_int, c_long, c_void, iovec, pollfd, size_t, sockaddr, sockaddr_in, socklen_t, ssize_t, timeval,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Bytes on the way in one direction, from which the sender waits.
const WINDOW_BYTES: usize = 256 << 10;

/// Time until bytes that a cut link has held are sent again.
const RESEND_NS: u64 = 200_000_000;

/// Latency of a link, in nanoseconds, at least and at most.
const LATENCY_NS: (u64, u64) = (30_000, 400_000);

type Address = (u32, u16);

/// One direction of a connection.
#[derive(Default)]
struct Direction {
    /// What has arrived.
    arrived: VecDeque<u8>,
    /// What is on the way, and when it arrives.
    sent: VecDeque<(u64, Vec<u8>)>,
    sent_bytes: usize,
    last_arrival: u64,
    /// The sender sends no more; what was sent arrives first.
    is_shut: bool,
    /// The receiver has read all there will be, or takes no more.
    has_ended: bool,
}

struct Connection {
    /// The nodes of the ends: the first one has connected.
    nodes: [Node; 2],
    addresses: [Address; 2],
    /// From the end with this number.
    directions: [Direction; 2],
    is_reset: bool,
    /// The other end has lost power.
    is_silent: bool,
    is_closed: [bool; 2],
}

enum Kind {
    New,
    Listening(Address),
    /// Number of the connection, once it is made, and the end.
    Connecting(Option<Result<usize, c_int>>, u64),
    Connected(usize, usize),
}

struct Socket {
    kind: Kind,
    is_nonblocking: bool,
    receive_ns: Option<u64>,
    send_ns: Option<u64>,
}

struct Listener {
    node: Node,
    waiting: VecDeque<usize>,
}

/// All of the network.
#[derive(Default)]
pub(crate) struct Sockets {
    sockets: BTreeMap<c_int, Socket>,
    listeners: BTreeMap<Address, Listener>,
    connections: Vec<Connection>,
    cut: BTreeSet<(Node, Node)>,
    /// Further latency of a link.
    slow: BTreeMap<(Node, Node), u64>,
    connecting: u64,
    next_port: u16,
}

fn arrival_key(connection: usize, end: usize) -> usize {
    connection << 6 | end << 4 | 3
}

fn room_key(connection: usize, end: usize) -> usize {
    connection << 6 | end << 4 | 5
}

fn listener_key((host, port): Address) -> usize {
    (host as usize) << 20 | usize::from(port) << 4 | 7
}

fn connecting_key(number: u64) -> usize {
    (number as usize) << 4 | 9
}

impl World {
    /// Cuts a link, or mends it.
    pub(crate) fn cut(&mut self, from: Node, to: Node, is_cut: bool) {
        if is_cut {
            self.sockets.cut.insert((from, to));
        } else {
            self.sockets.cut.remove(&(from, to));
        }
    }

    /// Makes a link slow.
    pub(crate) fn delay(&mut self, from: Node, to: Node, nanoseconds: u64) {
        self.sockets.slow.insert((from, to), nanoseconds);
    }

    /// Mends all links.
    pub(crate) fn mend_links(&mut self) {
        self.sockets.cut.clear();
        self.sockets.slow.clear();
    }

    fn latency(&mut self, from: Node, to: Node) -> u64 {
        let more = self.sockets.slow.get(&(from, to)).copied().unwrap_or(0);
        let (least, most) = LATENCY_NS;
        least + self.draw() % (most - least) + if more > 0 { self.draw() % more } else { 0 }
    }

    /// Ends what a node that has died was connected with. `is_told`: the other ends are told.
    pub(crate) fn cut_off(&mut self, node: Node, is_told: bool) {
        self.sockets.listeners.retain(|_, listener| listener.node != node);
        for number in 0..self.sockets.connections.len() {
            let connection = &mut self.sockets.connections[number];
            if connection.nodes.contains(&node) && !connection.is_reset {
                if is_told {
                    self.reset(number);
                } else {
                    connection.is_silent = true;
                }
            }
        }
    }

    /// Tells the other ends of silent connections, as a machine does that is up again.
    pub(crate) fn reset_silent(&mut self) {
        for number in 0..self.sockets.connections.len() {
            if self.sockets.connections[number].is_silent {
                self.reset(number);
            }
        }
    }

    fn reset(&mut self, number: usize) {
        let connection = &mut self.sockets.connections[number];
        connection.is_reset = true;
        for direction in &mut connection.directions {
            *direction = Direction { is_shut: true, ..Direction::default() };
        }
        self.wake_ends(number);
    }

    fn wake_ends(&mut self, number: usize) {
        for end in 0..2 {
            self.wake(arrival_key(number, end), usize::MAX);
            self.wake(room_key(number, end), usize::MAX);
        }
    }

    /// Bytes, or the end, arrive.
    fn deliver(&mut self, number: usize, from: usize) {
        let connection = &self.sockets.connections[number];
        let [sender, receiver] = [connection.nodes[from], connection.nodes[1 - from]];
        if connection.is_reset || connection.is_silent {
            return;
        }
        let is_cut = self.sockets.cut.contains(&(sender, receiver));
        let now = self.now();
        let direction = &mut self.sockets.connections[number].directions[from];
        if is_cut {
            let again = now + RESEND_NS;
            for (at, _) in &mut direction.sent {
                *at = again.max(*at);
            }
            direction.last_arrival = again.max(direction.last_arrival);
            self.at(again, Box::new(move |world| world.deliver(number, from)));
            return;
        }
        while let Some((at, _)) = direction.sent.front()
            && *at <= now
            && let Some((_, bytes)) = direction.sent.pop_front()
        {
            direction.sent_bytes -= bytes.len();
            direction.arrived.extend(bytes);
        }
        self.wake(arrival_key(number, 1 - from), usize::MAX);
        self.wake(room_key(number, from), usize::MAX);
    }

    fn send(&mut self, number: usize, end: usize, bytes: Vec<u8>) {
        let nodes = self.sockets.connections[number].nodes;
        let latency = self.latency(nodes[end], nodes[1 - end]);
        let at = self.now() + latency;
        self.trace(bytes.len() as u64);
        let direction = &mut self.sockets.connections[number].directions[end];
        let at = at.max(direction.last_arrival);
        direction.last_arrival = at;
        direction.sent_bytes += bytes.len();
        direction.sent.push_back((at, bytes));
        self.at(at, Box::new(move |world| world.deliver(number, end)));
    }

    /// An attempt to connect arrives.
    fn connect(&mut self, descriptor: c_int, number: u64, from: Node, address: Address) {
        let is_it = |socket: &Socket| matches!(socket.kind, Kind::Connecting(None, own) if own == number);
        if !self.sockets.sockets.get(&descriptor).is_some_and(is_it) {
            return;
        }
        let listener = self.sockets.listeners.get(&address).map(|listener| listener.node);
        let is_cut = listener.is_some_and(|node| {
            self.sockets.cut.contains(&(from, node)) || self.sockets.cut.contains(&(node, from))
        });
        if is_cut {
            let again = self.now() + RESEND_NS;
            self.at(again, Box::new(move |world| world.connect(descriptor, number, from, address)));
            return;
        }
        let outcome = match listener {
            Some(node) if !self.is_dead(node) => {
                let made = self.sockets.connections.len();
                self.sockets.next_port = self.sockets.next_port.wrapping_add(1).max(1);
                let own = (u32::try_from(from).unwrap_or(0), self.sockets.next_port);
                self.sockets.connections.push(Connection {
                    nodes: [from, node],
                    addresses: [own, address],
                    directions: Default::default(),
                    is_reset: false,
                    is_silent: false,
                    is_closed: [false; 2],
                });
                if let Some(listener) = self.sockets.listeners.get_mut(&address) {
                    listener.waiting.push_back(made);
                }
                self.wake(listener_key(address), 1);
                Ok(made)
            }
            _ => Err(libc::ECONNREFUSED),
        };
        if let Some(socket) = self.sockets.sockets.get_mut(&descriptor) {
            socket.kind = Kind::Connecting(Some(outcome), number);
        }
        self.wake(connecting_key(number), usize::MAX);
    }
}

/// A new descriptor.
fn descriptor() -> c_int {
    let path = c"/dev/null";
    let arguments =
        [libc::AT_FDCWD.into(), path.as_ptr() as c_long, (libc::O_RDWR | libc::O_CLOEXEC).into(), 0, 0, 0];
    // SAFETY: a path that ends with 0.
    result(unsafe { call(libc::SYS_openat, arguments) }) as c_int
}

impl Guard {
    fn socket(&mut self, descriptor: c_int) -> Option<&mut Socket> {
        self.sockets.sockets.get_mut(&descriptor)
    }

    fn is_simulated(&self, descriptor: c_int) -> bool {
        self.sockets.sockets.contains_key(&descriptor)
    }

    fn add(&mut self, kind: Kind) -> c_int {
        let descriptor = descriptor();
        if descriptor >= 0 {
            let socket = Socket { kind, is_nonblocking: false, receive_ns: None, send_ns: None };
            self.sockets.sockets.insert(descriptor, socket);
        }
        descriptor
    }

    /// The connection and the end of a socket, which is connected when its attempt has ended.
    fn connection(&mut self, descriptor: c_int) -> Result<(usize, usize), c_int> {
        let socket = self.socket(descriptor).ok_or(libc::EBADF)?;
        match socket.kind {
            Kind::Connecting(Some(Ok(number)), _) => {
                socket.kind = Kind::Connected(number, 0);
                Ok((number, 0))
            }
            Kind::Connected(number, end) => Ok((number, end)),
            Kind::Connecting(Some(Err(error)), _) => Err(error),
            _ => Err(libc::ENOTCONN),
        }
    }

    fn receive(mut self, descriptor: c_int, target: &mut [u8], peeks: bool) -> Result<usize, c_int> {
        let (number, end) = self.connection(descriptor)?;
        let socket = self.socket(descriptor).ok_or(libc::EBADF)?;
        let (is_nonblocking, wait) = (socket.is_nonblocking, socket.receive_ns);
        let until = wait.map(|wait| self.after_local(wait));
        loop {
            let connection = &mut self.sockets.connections[number];
            if connection.is_reset {
                return Err(libc::ECONNRESET);
            }
            let direction = &mut connection.directions[1 - end];
            if direction.has_ended {
                return Ok(0);
            }
            if !direction.arrived.is_empty() {
                let count = target.len().min(direction.arrived.len());
                for (place, byte) in target.iter_mut().zip(direction.arrived.iter()) {
                    *place = *byte;
                }
                if !peeks {
                    direction.arrived.drain(..count);
                    self.wake(room_key(number, 1 - end), usize::MAX);
                }
                return Ok(count);
            }
            if direction.is_shut && direction.sent.is_empty() {
                return Ok(0);
            }
            if is_nonblocking {
                return Err(libc::EAGAIN);
            }
            let woken;
            (self, woken) = self.block(Some(arrival_key(number, end)), until);
            if woken == Woken::TimedOut {
                return Err(libc::EAGAIN);
            }
        }
    }

    fn send_some(mut self, descriptor: c_int, parts: &[&[u8]]) -> Result<usize, c_int> {
        let (number, end) = self.connection(descriptor)?;
        let socket = self.socket(descriptor).ok_or(libc::EBADF)?;
        let (is_nonblocking, wait) = (socket.is_nonblocking, socket.send_ns);
        let until = wait.map(|wait| self.after_local(wait));
        loop {
            let connection = &self.sockets.connections[number];
            if connection.is_reset || connection.is_closed[1 - end] || connection.directions[end].is_shut {
                return Err(if connection.is_reset { libc::ECONNRESET } else { libc::EPIPE });
            }
            let direction = &connection.directions[end];
            let room = WINDOW_BYTES.saturating_sub(direction.sent_bytes + direction.arrived.len());
            if room > 0 {
                let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).take(room).collect();
                let count = bytes.len();
                self.send(number, end, bytes);
                return Ok(count);
            }
            if is_nonblocking {
                return Err(libc::EAGAIN);
            }
            let woken;
            (self, woken) = self.block(Some(room_key(number, end)), until);
            if woken == Woken::TimedOut {
                return Err(libc::EAGAIN);
            }
        }
    }

    /// This end sends no more. Its end arrives behind what was sent.
    fn shut(&mut self, number: usize, end: usize) {
        let nodes = self.sockets.connections[number].nodes;
        let latency = self.latency(nodes[end], nodes[1 - end]);
        let direction = &mut self.sockets.connections[number].directions[end];
        direction.is_shut = true;
        let at = direction.last_arrival.max(self.now() + latency);
        self.at(at, Box::new(move |world| world.deliver(number, end)));
        self.wake(room_key(number, end), usize::MAX);
    }

    fn close(&mut self, descriptor: c_int) {
        let Ok((number, end)) = self.connection(descriptor) else {
            if let Some(Socket { kind: Kind::Listening(address), .. }) =
                self.sockets.sockets.remove(&descriptor)
            {
                self.sockets.listeners.remove(&address);
            }
            return;
        };
        self.sockets.sockets.remove(&descriptor);
        self.shut(number, end);
        self.sockets.connections[number].is_closed[end] = true;
        self.sockets.connections[number].directions[1 - end].has_ended = true;
        self.wake(arrival_key(number, end), usize::MAX);
        self.wake(room_key(number, 1 - end), usize::MAX);
    }
}

fn counted(outcome: Result<usize, c_int>) -> ssize_t {
    match outcome {
        Ok(count) => count as ssize_t,
        Err(number) => error(number) as ssize_t,
    }
}

/// The address in a `sockaddr`.
///
/// # Safety
/// It has `length` bytes.
unsafe fn address(place: *const sockaddr, length: socklen_t) -> Option<Address> {
    if (length as usize) < size_of::<sockaddr_in>() {
        return None;
    }
    // SAFETY: the caller's.
    let found = unsafe { &*place.cast::<sockaddr_in>() };
    let is_it = c_int::from(found.sin_family) == libc::AF_INET;
    is_it.then(|| (u32::from_be(found.sin_addr.s_addr), u16::from_be(found.sin_port)))
}

/// Writes an address.
///
/// # Safety
/// Both places are valid.
unsafe fn write_address((host, port): Address, place: *mut sockaddr, length: *mut socklen_t) {
    if place.is_null() || length.is_null() {
        return;
    }
    // SAFETY: the caller's.
    unsafe {
        *place.cast::<sockaddr_in>() = sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: port.to_be(),
            sin_addr: libc::in_addr { s_addr: host.to_be() },
            sin_zero: [0; 8],
        };
        *length = size_of::<sockaddr_in>() as socklen_t;
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    if is_inside() {
        return world().add(Kind::New);
    }
    // SAFETY: plain numbers.
    result(unsafe { call(libc::SYS_socket, [domain.into(), kind.into(), protocol.into(), 0, 0, 0]) }) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bind(descriptor: c_int, place: *const sockaddr, length: socklen_t) -> c_int {
    if !is_inside() {
        let arguments = [descriptor.into(), place as c_long, length.into(), 0, 0, 0];
        // SAFETY: the caller's.
        return result(unsafe { call(libc::SYS_bind, arguments) }) as c_int;
    }
    // SAFETY: the caller's.
    let Some(address) = (unsafe { address(place, length) }) else { return error(libc::EAFNOSUPPORT) };
    let mut world = world();
    if world.sockets.listeners.contains_key(&address) {
        return error(libc::EADDRINUSE);
    }
    match world.socket(descriptor) {
        Some(socket) => socket.kind = Kind::Listening(address),
        None => return error(libc::EBADF),
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn listen(descriptor: c_int, backlog: c_int) -> c_int {
    if !is_inside() {
        // SAFETY: plain numbers.
        return result(unsafe { call(libc::SYS_listen, [descriptor.into(), backlog.into(), 0, 0, 0, 0]) })
            as c_int;
    }
    let mut world = world();
    let node = world.own_node();
    let Some(Socket { kind: Kind::Listening(address), .. }) = world.socket(descriptor) else {
        return error(libc::EINVAL);
    };
    let address = *address;
    world.sockets.listeners.insert(address, Listener { node, waiting: VecDeque::new() });
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn accept4(
    descriptor: c_int,
    place: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    if !is_inside() {
        let arguments = [descriptor.into(), place as c_long, length as c_long, flags.into(), 0, 0];
        // SAFETY: the caller's.
        return result(unsafe { call(libc::SYS_accept4, arguments) }) as c_int;
    }
    let mut world = world();
    loop {
        let Some(Socket { kind: Kind::Listening(address), .. }) = world.socket(descriptor) else {
            return error(libc::EINVAL);
        };
        let address = *address;
        let waiting = world.sockets.listeners.get_mut(&address).map(|listener| listener.waiting.pop_front());
        match waiting {
            None => return error(libc::EINVAL),
            Some(Some(number)) => {
                let accepted = world.add(Kind::Connected(number, 1));
                let from = world.sockets.connections[number].addresses[0];
                // SAFETY: the caller's.
                unsafe { write_address(from, place, length) };
                return accepted;
            }
            Some(None) => (world, _) = world.block(Some(listener_key(address)), None),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn connect(descriptor: c_int, place: *const sockaddr, length: socklen_t) -> c_int {
    if !is_inside() {
        let arguments = [descriptor.into(), place as c_long, length.into(), 0, 0, 0];
        // SAFETY: the caller's.
        return result(unsafe { call(libc::SYS_connect, arguments) }) as c_int;
    }
    // SAFETY: the caller's.
    let Some(address) = (unsafe { address(place, length) }) else { return error(libc::EAFNOSUPPORT) };
    let mut world = world();
    world.sockets.connecting += 1;
    let (number, from) = (world.sockets.connecting, world.own_node());
    let Some(socket) = world.socket(descriptor) else { return error(libc::EBADF) };
    socket.kind = Kind::Connecting(None, number);
    let is_nonblocking = socket.is_nonblocking;
    let at = world.now() + 2 * world.latency(from, from);
    world.at(at, Box::new(move |world| world.connect(descriptor, number, from, address)));
    if is_nonblocking {
        return error(libc::EINPROGRESS);
    }
    loop {
        match world.connection(descriptor) {
            Ok(_) => return 0,
            Err(libc::ENOTCONN) => (world, _) = world.block(Some(connecting_key(number)), None),
            Err(number) => return error(number),
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn poll(polled: *mut pollfd, count: libc::nfds_t, milliseconds: c_int) -> c_int {
    // SAFETY: the caller's.
    let one = if count == 1 && is_inside() { unsafe { polled.as_mut() } } else { None };
    let Some(one) = one.filter(|one| world().is_simulated(one.fd)) else {
        let wait = libc::timespec {
            tv_sec: (milliseconds / 1000).into(),
            tv_nsec: c_long::from(milliseconds % 1000) * 1_000_000,
        };
        let wait = if milliseconds < 0 { std::ptr::null() } else { &raw const wait };
        // SAFETY: the caller's.
        return result(unsafe {
            call(libc::SYS_ppoll, [polled as c_long, count as c_long, wait as c_long, 0, 8, 0])
        }) as c_int;
    };
    let mut world = world();
    let until = u64::try_from(milliseconds).ok().map(|wait| world.after_local(wait * 1_000_000));
    loop {
        let key = match world.socket(one.fd).map(|socket| &socket.kind) {
            Some(Kind::Connecting(None, number)) => connecting_key(*number),
            Some(Kind::Connecting(Some(Err(_)), _)) => {
                one.revents = libc::POLLERR | libc::POLLHUP;
                return 1;
            }
            _ => {
                one.revents = libc::POLLOUT;
                return 1;
            }
        };
        let woken;
        (world, woken) = world.block(Some(key), until);
        if woken == Woken::TimedOut {
            return 0;
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recv(descriptor: c_int, target: *mut c_void, length: size_t, flags: c_int) -> ssize_t {
    let inside = is_inside().then(world).filter(|world| world.is_simulated(descriptor));
    let Some(world) = inside else {
        let arguments = [descriptor.into(), target as c_long, length as c_long, flags.into(), 0, 0];
        // SAFETY: the caller's.
        return result(unsafe { call(libc::SYS_recvfrom, arguments) }) as ssize_t;
    };
    // SAFETY: the caller's.
    let target = unsafe { std::slice::from_raw_parts_mut(target.cast::<u8>(), length) };
    counted(world.receive(descriptor, target, flags & libc::MSG_PEEK != 0))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn send(descriptor: c_int, bytes: *const c_void, length: size_t, flags: c_int) -> ssize_t {
    let inside = is_inside().then(world).filter(|world| world.is_simulated(descriptor));
    let Some(world) = inside else {
        let arguments = [descriptor.into(), bytes as c_long, length as c_long, flags.into(), 0, 0];
        // SAFETY: the caller's.
        return result(unsafe { call(libc::SYS_sendto, arguments) }) as ssize_t;
    };
    // SAFETY: the caller's.
    let bytes = unsafe { std::slice::from_raw_parts(bytes.cast::<u8>(), length) };
    counted(world.send_some(descriptor, &[bytes]))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn writev(descriptor: c_int, parts: *const iovec, count: c_int) -> ssize_t {
    let inside = is_inside().then(world).filter(|world| world.is_simulated(descriptor));
    let Some(world) = inside else {
        let arguments = [descriptor.into(), parts as c_long, count.into(), 0, 0, 0];
        // SAFETY: the caller's.
        return result(unsafe { call(libc::SYS_writev, arguments) }) as ssize_t;
    };
    // SAFETY: the caller's.
    let parts = unsafe { std::slice::from_raw_parts(parts, usize::try_from(count).unwrap_or(0)) };
    let bytes = |part: &iovec| {
        // SAFETY: the caller's.
        unsafe { std::slice::from_raw_parts(part.iov_base.cast::<u8>().cast_const(), part.iov_len) }
    };
    let parts: Vec<&[u8]> = parts.iter().filter(|part| part.iov_len > 0).map(bytes).collect();
    counted(world.send_some(descriptor, &parts))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn shutdown(descriptor: c_int, how: c_int) -> c_int {
    let inside = is_inside().then(world).filter(|world| world.is_simulated(descriptor));
    let Some(mut world) = inside else {
        // SAFETY: plain numbers.
        return result(unsafe { call(libc::SYS_shutdown, [descriptor.into(), how.into(), 0, 0, 0, 0]) })
            as c_int;
    };
    let (number, end) = match world.connection(descriptor) {
        Ok(connection) => connection,
        Err(number) => return error(number),
    };
    if how != libc::SHUT_RD {
        world.shut(number, end);
    }
    if how != libc::SHUT_WR {
        world.sockets.connections[number].directions[1 - end].has_ended = true;
        world.wake(arrival_key(number, end), usize::MAX);
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn close(descriptor: c_int) -> c_int {
    if is_inside() {
        let mut world = world();
        if world.is_simulated(descriptor) {
            world.close(descriptor);
        }
    }
    // SAFETY: a plain number.
    result(unsafe { call(libc::SYS_close, [descriptor.into(), 0, 0, 0, 0, 0]) }) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn setsockopt(
    descriptor: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    let inside = is_inside().then(world).filter(|world| world.is_simulated(descriptor));
    let Some(mut world) = inside else {
        let arguments = [descriptor.into(), level.into(), name.into(), value as c_long, length.into(), 0];
        // SAFETY: the caller's.
        return result(unsafe { call(libc::SYS_setsockopt, arguments) }) as c_int;
    };
    if level == libc::SOL_SOCKET && matches!(name, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO) {
        // SAFETY: the caller's.
        let time = unsafe { &*value.cast::<timeval>() };
        let nanoseconds = u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
            + u64::try_from(time.tv_usec).unwrap_or(0) * 1000;
        let time = Some(nanoseconds).filter(|time| *time > 0);
        if let Some(socket) = world.socket(descriptor) {
            match name {
                libc::SO_RCVTIMEO => socket.receive_ns = time,
                _ => socket.send_ns = time,
            }
        }
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getsockopt(
    descriptor: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    let inside = is_inside().then(world).filter(|world| world.is_simulated(descriptor));
    let Some(mut world) = inside else {
        let arguments = [descriptor.into(), level.into(), name.into(), value as c_long, length as c_long, 0];
        // SAFETY: the caller's.
        return result(unsafe { call(libc::SYS_getsockopt, arguments) }) as c_int;
    };
    let found = match world.connection(descriptor) {
        Err(number) if name == libc::SO_ERROR && number != libc::ENOTCONN => number,
        _ => 0,
    };
    // SAFETY: the caller's, an integer.
    unsafe {
        *value.cast::<c_int>() = found;
        *length = size_of::<c_int>() as socklen_t;
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ioctl(descriptor: c_int, request: libc::c_ulong, argument: *mut c_int) -> c_int {
    let inside = is_inside().then(world).filter(|world| world.is_simulated(descriptor));
    let Some(mut world) = inside else {
        // SAFETY: the caller's.
        return result(unsafe {
            call(libc::SYS_ioctl, [descriptor.into(), request as c_long, argument as c_long, 0, 0, 0])
        }) as c_int;
    };
    if request == libc::FIONBIO
        && let Some(socket) = world.socket(descriptor)
    {
        // SAFETY: the caller's.
        socket.is_nonblocking = unsafe { *argument } != 0;
    }
    0
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getsockname(descriptor: c_int, place: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { name_of(libc::SYS_getsockname, true, descriptor, place, length) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getpeername(descriptor: c_int, place: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: the caller's.
    unsafe { name_of(libc::SYS_getpeername, false, descriptor, place, length) }
}

unsafe fn name_of(
    number: c_long,
    is_own: bool,
    descriptor: c_int,
    place: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    let inside = is_inside().then(world).filter(|world| world.is_simulated(descriptor));
    let Some(mut world) = inside else {
        // SAFETY: the caller's.
        return result(unsafe {
            call(number, [descriptor.into(), place as c_long, length as c_long, 0, 0, 0])
        }) as c_int;
    };
    let found = match (world.connection(descriptor), world.socket(descriptor).map(|socket| &socket.kind)) {
        (Ok((number, end)), _) => {
            world.sockets.connections[number].addresses[if is_own { end } else { 1 - end }]
        }
        (_, Some(Kind::Listening(address))) if is_own => *address,
        _ => return error(libc::ENOTCONN),
    };
    // SAFETY: the caller's.
    unsafe { write_address(found, place, length) };
    0
}
