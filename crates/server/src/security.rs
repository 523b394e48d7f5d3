//! Users and roles, throttling of logins, and defence against cross-site requests.

pub(crate) mod auth;
pub(crate) mod origin;
pub(crate) mod throttle;
