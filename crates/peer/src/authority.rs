//! A certificate authority of one cluster, which issues the certificates of its servers.
//!
//! Certificates have no end: the authority is of one cluster alone, and a cluster that loses trust in a key
//! gets a new authority. A person with the key of the authority can add servers, so the key is in a file
//! apart from the servers ([`Authority::key`]). It issues certificates later ([`Authority::from_pem`]).

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::pki_types::ServerName;
use vervet_model::{Error, ErrorKind, Result};

/// A new certificate authority of one cluster.
pub struct Authority {
    certificate: String,
    key: String,
    issuer: Issuer<'static, KeyPair>,
}

/// What a server needs to prove its name and to check the names of others: PEM texts.
#[derive(Clone)]
pub struct IdentityFiles {
    /// The certificate of the authority.
    pub authority: String,
    /// The certificate of the server.
    pub certificate: String,
    /// The private key of the server.
    pub key: String,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for IdentityFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdentityFiles").finish_non_exhaustive()
    }
}

fn failed(error: &rcgen::Error) -> Error {
    Error::internal(format!("could not make a certificate: {error}"))
}

fn params(cluster_name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.distinguished_name.push(DnType::CommonName, format!("Vervet cluster {cluster_name}"));
    params
}

impl Authority {
    /// A new authority with a new key.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`]: the system gives no randomness.
    pub fn new(cluster_name: &str) -> Result<Self> {
        let params = params(cluster_name);
        let key = KeyPair::generate().map_err(|error| failed(&error))?;
        let certificate = params.self_signed(&key).map_err(|error| failed(&error))?;
        let pem = key.serialize_pem();
        Ok(Self { certificate: certificate.pem(), key: pem, issuer: Issuer::new(params, key) })
    }

    /// The authority of a cluster, from its certificate and its private key: PEM texts.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: the key is damaged.
    pub fn from_pem(cluster_name: &str, certificate: &str, key: &str) -> Result<Self> {
        let pair = KeyPair::from_pem(key).map_err(|error| {
            let what = format!("the private key of the authority cannot be used: {error}");
            Error::new(ErrorKind::Input, what).with_hint("give the file that was made with the cluster")
        })?;
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        Ok(Self { certificate, key, issuer: Issuer::new(params(cluster_name), pair) })
    }

    /// Its certificate: a PEM text.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Its private key, a secret: a PEM text.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// A certificate, with a new key, for the server of this name.
    ///
    /// # Errors
    /// [`ErrorKind::Input`]: the name is not that of a host (letters, digits, hyphens, dots).
    pub fn issue(&self, server_name: &str) -> Result<IdentityFiles> {
        check_name(server_name)?;
        let mut params = CertificateParams::new([server_name.to_owned()]).map_err(|error| failed(&error))?;
        params.distinguished_name.push(DnType::CommonName, server_name);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().map_err(|error| failed(&error))?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(|error| failed(&error))?;
        Ok(IdentityFiles {
            authority: self.certificate.clone(),
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

fn check_name(server_name: &str) -> Result<()> {
    match ServerName::try_from(server_name) {
        Ok(ServerName::DnsName(_)) => Ok(()),
        _ => Err(Error::new(ErrorKind::Input, format!("{server_name:?} cannot be the name of a server"))
            .with_hint("a name consists of letters, digits and hyphens; it is no address")),
    }
}
