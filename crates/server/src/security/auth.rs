//! Authentication and roles: Basic (passwords, Argon2) and Bearer (tokens, SHA-256).
//!
//! # Cost
//! Verifying a password takes tens of milliseconds by design, so it runs on a blocking thread. Verified
//! credentials are cached per client address (as a keyed hash, [`VERIFIED_CACHE_MAX`] of them) until the
//! server ends. Wrong passwords are throttled by address (`throttle`).
//! # Not here
//! Sessions, cookies.

use crate::http::reply::{Failure, Outcome};
use crate::operations::events;
use crate::operations::metrics::Metrics;
use crate::options::{Role, ServerOptions, User};
use crate::security::origin::NAMES_HINT;
use crate::security::throttle::{self, Throttle};
use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;
use vervet_model::{Error, ErrorKind, Result, hex};

/// The size of the cache of verified passwords; a full cache is cleared.
const VERIFIED_CACHE_MAX: usize = 1024;

/// Concurrent password verifications: each takes 19 MiB and a core for a while.
const CONCURRENT_VERIFICATIONS_MAX: usize = 2;

/// Properties of the sender of a request besides its credentials.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    /// The address of the client.
    pub(crate) peer: IpAddr,
    /// The request uses a trusted host name: see `origin`.
    pub(crate) has_trusted_host: bool,
}

/// `Retry-After` for an address with too many waiting passwords.
const RETRY_AFTER_SECONDS: &str = "5";

/// The users of the server.
#[derive(Debug)]
pub(crate) struct Users {
    users: Vec<User>,
    anonymous: Option<Role>,
    /// Key of the hashes, so that they are worthless elsewhere.
    secret: [u8; 32],
    verified: Mutex<HashSet<[u8; 32]>>,
    verifying: Semaphore,
    throttle: Throttle,
    metrics: Arc<Metrics>,
    /// A dummy hash, verified for unknown users so that timing does not reveal which users exist.
    dummy_hash: String,
}

impl Users {
    /// # Errors
    /// [`ErrorKind::Input`]: an invalid hash, a duplicate or invalid name.
    pub(crate) fn new(options: &ServerOptions, metrics: &Arc<Metrics>) -> Result<Self> {
        let mut names = HashSet::new();
        for user in &options.users {
            let wrong = |what: &str| {
                Err(Error::new(ErrorKind::Input, format!("user {}: {what}", user.name))
                    .with_hint("vervet password prints the hash of a password"))
            };
            if user.name.is_empty() || user.name.contains(':') {
                return wrong("names must not be empty or contain a colon");
            }
            if !names.insert(&user.name) {
                return wrong("duplicate name");
            }
            if user.password.is_none() && user.token_sha256.is_none() {
                return wrong("neither password nor token_sha256 is given");
            }
            if let Some(password) = &user.password
                && PasswordHash::new(password).is_err()
            {
                return wrong("password is not a PHC string ($argon2id$…)");
            }
            if let Some(token) = &user.token_sha256
                && (token.len() != 64 || !token.bytes().all(|byte| byte.is_ascii_hexdigit()))
            {
                return wrong("token_sha256 does not have 64 hexadecimal digits");
            }
        }
        let mut secret = [0; 32];
        random(&mut secret)?;
        Ok(Self {
            users: options.users.clone(),
            anonymous: if options.users.is_empty() { Some(Role::Admin) } else { options.anonymous },
            secret,
            verified: Mutex::default(),
            verifying: Semaphore::new(CONCURRENT_VERIFICATIONS_MAX),
            throttle: Throttle::default(),
            metrics: Arc::clone(metrics),
            dummy_hash: if options.users.is_empty() { String::new() } else { hash_password("nobody")? },
        })
    }

    /// Whether every credential has the same role as in `other`.
    pub(crate) fn have_same_credentials(&self, other: &Self) -> bool {
        let fields = |users: &Self| -> Vec<_> {
            let fields = |user: &User| {
                (user.name.clone(), user.password.clone(), user.token_sha256.clone(), user.role)
            };
            users.users.iter().map(fields).collect()
        };
        self.anonymous == other.anonymous && fields(self) == fields(other)
    }

    /// Whether access is unrestricted.
    pub(crate) fn is_open(&self) -> bool {
        self.users.is_empty()
    }

    /// The role of a request with these headers; `None`: no access.
    ///
    /// # Errors
    /// 401 for wrong credentials.
    pub(crate) async fn role(&self, headers: &HeaderMap, caller: Caller) -> Outcome<Option<Role>> {
        Ok(match headers.get(AUTHORIZATION) {
            Some(_) if self.is_open() => self.anonymous,
            None => self.anonymous.filter(|_| caller.has_trusted_host),
            Some(value) => {
                let value = value.to_str().unwrap_or_default();
                let (scheme, credentials) = value.split_once(' ').unwrap_or((value, ""));
                let user = if scheme.eq_ignore_ascii_case("basic") {
                    self.basic(credentials.trim(), caller.peer).await?
                } else if scheme.eq_ignore_ascii_case("bearer") {
                    self.bearer(credentials.trim(), caller.peer)
                } else {
                    None
                };
                match user {
                    Some(user) => Some(user.role),
                    None => return Err(unauthorized("the name, the password or the token is wrong")),
                }
            }
        })
    }

    /// Checks that the sender of these headers has at least the role `needed`.
    ///
    /// # Errors
    /// 401 for missing or wrong credentials; 403 for an insufficient role.
    pub(crate) async fn check(&self, headers: &HeaderMap, caller: Caller, needed: Role) -> Outcome<()> {
        let role = self.role(headers, caller).await?;
        allow(role, headers.contains_key(AUTHORIZATION), needed).map_err(|failure| {
            let by_name = !caller.has_trusted_host && self.anonymous.is_some_and(|role| role >= needed);
            if by_name && failure.status == StatusCode::UNAUTHORIZED {
                failure.hint(NAMES_HINT)
            } else {
                failure
            }
        })
    }

    /// The role of a user by name and password; `None`: one of them is wrong.
    ///
    /// # Errors
    /// 429: too many passwords of this address wait.
    pub(crate) async fn password(&self, name: &str, password: &str, peer: IpAddr) -> Outcome<Option<Role>> {
        // As in Basic authentication, where a colon ends the name.
        if name.contains(':') {
            return Ok(None);
        }
        Ok(self.verify(name, password, peer).await?.map(|user| user.role))
    }

    /// The name of the user whose credentials these headers have, once [`Users::role`] has accepted them.
    /// `None`: anonymous.
    pub(crate) fn name(&self, headers: &HeaderMap) -> Option<Arc<str>> {
        if self.is_open() {
            return None;
        }
        let (scheme, credentials) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        if scheme.eq_ignore_ascii_case("bearer") {
            let user = self.with_token(credentials.trim())?;
            return Some(user.name.as_str().into());
        }
        let decoded = String::from_utf8(STANDARD.decode(credentials.trim()).ok()?).ok()?;
        Some(decoded.split_once(':')?.0.into())
    }

    async fn basic(&self, credentials: &str, peer: IpAddr) -> Outcome<Option<&User>> {
        let decoded = STANDARD.decode(credentials).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        match decoded.as_deref().and_then(|text| text.split_once(':')) {
            Some((name, password)) => self.verify(name, password, peer).await,
            None => Ok(None),
        }
    }

    async fn verify(&self, name: &str, password: &str, peer: IpAddr) -> Outcome<Option<&User>> {
        let user = self.users.iter().find(|user| user.name == name);
        let hash = user.and_then(|user| user.password.as_deref());
        let key = self.key(name, password, peer);
        if hash.is_some() && self.verified().contains(&key) {
            return Ok(user);
        }
        let Some(permit) = self.throttle.acquire(peer).await else {
            return Err(Failure::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too many passwords from this address are waiting",
            )
            .hint("wrong passwords are slowed down: wait, and send fewer at a time")
            .header(RETRY_AFTER, RETRY_AFTER_SECONDS));
        };
        // Another request may just have verified it.
        if hash.is_some() && self.verified().contains(&key) {
            return Ok(user);
        }
        let verified = {
            let _verification = self.verifying.acquire().await;
            let (hash, password) = (hash.unwrap_or(&self.dummy_hash).to_owned(), password.to_owned());
            let verified = tokio::task::spawn_blocking(move || {
                PasswordHash::new(&hash)
                    .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
            });
            verified.await.unwrap_or(false)
        };
        let user = user.filter(|user| verified && user.password.is_some());
        if user.is_none() {
            permit.failed();
            events::login_failed(&self.metrics, peer, Some(name));
            return Ok(None);
        }
        permit.succeeded();
        let mut verified = self.verified();
        if verified.len() >= VERIFIED_CACHE_MAX {
            verified.clear();
        }
        verified.insert(key);
        Ok(user)
    }

    /// The cache key of a verified password. It includes the address: cached passwords are not throttled, so
    /// the cache must not tell another address whether a guess is right.
    fn key(&self, name: &str, password: &str, peer: IpAddr) -> [u8; 32] {
        let mut digest = Sha256::new();
        digest.update(self.secret);
        digest.update(throttle::client_network(peer).to_string());
        digest.update(b" ");
        digest.update(name.as_bytes());
        digest.update(b":");
        digest.update(password.as_bytes());
        digest.finalize().into()
    }

    /// Compares hashes, so timing reveals nothing about the token. Wrong tokens are not throttled: a token is
    /// random and cannot be guessed.
    fn bearer(&self, token: &str, peer: IpAddr) -> Option<&User> {
        let user = self.with_token(token);
        if user.is_none() {
            events::login_failed(&self.metrics, peer, None);
        }
        user
    }

    fn with_token(&self, token: &str) -> Option<&User> {
        let digest = hex(&Sha256::digest(token.as_bytes()));
        let is_it =
            |user: &&User| user.token_sha256.as_ref().is_some_and(|hash| hash.eq_ignore_ascii_case(&digest));
        self.users.iter().find(is_it)
    }

    fn verified(&self) -> std::sync::MutexGuard<'_, HashSet<[u8; 32]>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The Argon2id hash of a password with a random salt, as a PHC string for the configuration file.
///
/// # Errors
/// The system provides no randomness.
pub fn hash_password(password: &str) -> Result<String> {
    let mut salt = [0; 16];
    random(&mut salt)?;
    let salt = SaltString::encode_b64(&salt).map_err(|error| Error::internal(format!("a salt: {error}")))?;
    let hash = Argon2::default().hash_password(password.as_bytes(), &salt);
    Ok(hash.map_err(|error| Error::internal(format!("the hash of a password: {error}")))?.to_string())
}

pub(crate) fn random(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes)
        .map_err(|error| Error::new(ErrorKind::Io, format!("could not draw random bytes: {error}")))
}

fn name(role: Role) -> &'static str {
    match role {
        Role::Read => "read",
        Role::Write => "write",
        Role::Admin => "admin",
    }
}

/// Checks that a role is sufficient; `named`: the client has authenticated.
///
/// # Errors
/// 401 without authentication, 403 for an insufficient role.
pub(crate) fn allow(role: Option<Role>, named: bool, needed: Role) -> Outcome<()> {
    match role {
        Some(role) if role >= needed => Ok(()),
        Some(role) if named => {
            let message = format!("the role {} may not do this", name(role));
            let hint = format!("required role: {}", name(needed));
            Err(Failure::new(StatusCode::FORBIDDEN, message).hint(hint))
        }
        _ => Err(unauthorized("a name and a password, or a token, are required")),
    }
}

fn unauthorized(message: &str) -> Failure {
    Failure::new(StatusCode::UNAUTHORIZED, message)
        .header(WWW_AUTHENTICATE, "Basic realm=\"vervet\", charset=\"UTF-8\"")
}
