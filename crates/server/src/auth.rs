//! Who asks, and what they may do: Basic (passwords, Argon2) and Bearer (tokens, SHA-256).
//!
//! # Cost
//! To verify a password takes tens of milliseconds on purpose, so it happens on a blocking thread, and what has been
//! verified is remembered (as a keyed hash, [`REMEMBERED_MAX`] of them) until the server ends.
//! # Not here
//! Sessions, cookies, and a change of users while the server runs.

use crate::options::{Role, ServerOptions, User};
use crate::reply::{Failure, Outcome};
use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher, PasswordVerifier, SaltString};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use hyper::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Semaphore;
use vervet_model::{Error, ErrorKind, Result};

/// How many verified passwords are remembered; when it is full it starts anew.
const REMEMBERED_MAX: usize = 1024;

/// Passwords that are verified at a time: each takes 19 MiB and a core for a while.
const VERIFIED_AT_ONCE: usize = 2;

/// Those who may use the server.
#[derive(Debug)]
pub(crate) struct Users {
    users: Vec<User>,
    anonymous: Option<Role>,
    /// Makes what is remembered worthless elsewhere.
    secret: [u8; 32],
    remembered: Mutex<HashSet<[u8; 32]>>,
    verifying: Semaphore,
    /// Verified in place of that of a user who is not there, so that time does not tell.
    nobody: String,
}

impl Users {
    /// # Errors
    /// [`ErrorKind::Input`]: a hash that is none, a name that is there twice or not possible.
    pub(crate) fn new(options: &ServerOptions) -> Result<Self> {
        let mut names = HashSet::new();
        for user in &options.users {
            let wrong = |what: &str| {
                Err(Error::new(ErrorKind::Input, format!("the user {}: {what}", user.name))
                    .with_hint("vervet password prints the hash of a password"))
            };
            if user.name.is_empty() || user.name.contains(':') {
                return wrong("a name is not empty and has no colon");
            }
            if !names.insert(&user.name) {
                return wrong("is there twice");
            }
            if user.password.is_none() && user.token_sha256.is_none() {
                return wrong("has neither password nor token_sha256");
            }
            if let Some(password) = &user.password
                && PasswordHash::new(password).is_err()
            {
                return wrong("password is no PHC string ($argon2id$…)");
            }
            if let Some(token) = &user.token_sha256
                && (token.len() != 64 || !token.bytes().all(|byte| byte.is_ascii_hexdigit()))
            {
                return wrong("token_sha256 has not 64 hexadecimal digits");
            }
        }
        let mut secret = [0; 32];
        random(&mut secret)?;
        Ok(Self {
            users: options.users.clone(),
            anonymous: if options.users.is_empty() { Some(Role::Admin) } else { options.anonymous },
            secret,
            remembered: Mutex::default(),
            verifying: Semaphore::new(VERIFIED_AT_ONCE),
            nobody: if options.users.is_empty() { String::new() } else { hash_password("nobody")? },
        })
    }

    /// Whether anybody may do anything.
    pub(crate) fn is_open(&self) -> bool {
        self.users.is_empty()
    }

    /// What whoever sends these headers may do; `None`: nothing.
    ///
    /// # Errors
    /// 401 for those who say wrongly who they are.
    pub(crate) async fn role(&self, headers: &HeaderMap) -> Outcome<Option<Role>> {
        Ok(match headers.get(AUTHORIZATION) {
            Some(_) if self.is_open() => self.anonymous,
            None => self.anonymous,
            Some(value) => {
                let value = value.to_str().unwrap_or_default();
                let (scheme, credentials) = value.split_once(' ').unwrap_or((value, ""));
                let user = if scheme.eq_ignore_ascii_case("basic") {
                    self.basic(credentials.trim()).await
                } else if scheme.eq_ignore_ascii_case("bearer") {
                    self.bearer(credentials.trim())
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

    /// Makes sure that whoever sends these headers may do what `needed` may.
    ///
    /// # Errors
    /// 401 for those who do not say who they are, or wrongly; 403 for those who may not.
    pub(crate) async fn check(&self, headers: &HeaderMap, needed: Role) -> Outcome<()> {
        allow(self.role(headers).await?, headers.contains_key(AUTHORIZATION), needed)
    }

    /// What somebody may do who says a name and a password; `None`: one of them is wrong.
    pub(crate) async fn password(&self, name: &str, password: &str) -> Option<Role> {
        // As in Basic authentication, where a colon ends the name.
        if name.contains(':') {
            return None;
        }
        self.verify(name, password).await.map(|user| user.role)
    }

    async fn basic(&self, credentials: &str) -> Option<&User> {
        let decoded = String::from_utf8(STANDARD.decode(credentials).ok()?).ok()?;
        let (name, password) = decoded.split_once(':')?;
        self.verify(name, password).await
    }

    async fn verify(&self, name: &str, password: &str) -> Option<&User> {
        let user = self.users.iter().find(|user| user.name == name);
        let hash = user.and_then(|user| user.password.as_deref());
        let mut digest = Sha256::new();
        digest.update(self.secret);
        digest.update(name.as_bytes());
        digest.update(b":");
        digest.update(password.as_bytes());
        let key: [u8; 32] = digest.finalize().into();
        if hash.is_some() && self.remembered().contains(&key) {
            return user;
        }
        let _turn = self.verifying.acquire().await.ok()?;
        let (hash, password) = (hash.unwrap_or(&self.nobody).to_owned(), password.to_owned());
        let verified = tokio::task::spawn_blocking(move || {
            PasswordHash::new(&hash)
                .is_ok_and(|hash| Argon2::default().verify_password(password.as_bytes(), &hash).is_ok())
        });
        let verified = verified.await.unwrap_or(false);
        user.filter(|user| verified && user.password.is_some()).inspect(|_| {
            let mut remembered = self.remembered();
            if remembered.len() >= REMEMBERED_MAX {
                remembered.clear();
            }
            remembered.insert(key);
        })
    }

    /// Compares hashes, so how long it takes says nothing about the token.
    fn bearer(&self, token: &str) -> Option<&User> {
        let digest = hex(&Sha256::digest(token.as_bytes()));
        self.users
            .iter()
            .find(|user| user.token_sha256.as_ref().is_some_and(|hash| hash.eq_ignore_ascii_case(&digest)))
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, HashSet<[u8; 32]>> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The Argon2id hash of a password, as a PHC string for the configuration file; each time another one.
///
/// # Errors
/// The system has no randomness.
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

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        use std::fmt::Write;
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn name(role: Role) -> &'static str {
    match role {
        Role::Read => "read",
        Role::Write => "write",
        Role::Admin => "admin",
    }
}

/// Makes sure that a role is enough; `named` are those who have said who they are.
///
/// # Errors
/// 401 for those who have not, 403 for those who may not.
pub(crate) fn allow(role: Option<Role>, named: bool, needed: Role) -> Outcome<()> {
    match role {
        Some(role) if role >= needed => Ok(()),
        Some(role) if named => {
            let message = format!("the role {} may not do this", name(role));
            let hint = format!("it takes the role {}", name(needed));
            Err(Failure::new(StatusCode::FORBIDDEN, message).hint(hint))
        }
        _ => Err(unauthorized("this takes a name and a password, or a token")),
    }
}

fn unauthorized(message: &str) -> Failure {
    Failure::new(StatusCode::UNAUTHORIZED, message)
        .header(WWW_AUTHENTICATE, "Basic realm=\"vervet\", charset=\"UTF-8\"")
}
