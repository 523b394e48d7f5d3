//! A machine for the simulation: threads that run one at a time, in an order from a seed, with virtual time
//! and a virtual network, below unchanged code.

mod kernel;
mod scheduler;
mod sockets;
mod symbols;

pub(crate) use kernel::{run_on, trap};
pub(crate) use scheduler::{Node, World, add_node, begin, move_to, wait_for, with};

/// The node of the calling thread.
pub(crate) fn own_node(world: &World) -> Node {
    world.own_node()
}
