"""Certificates, keys and tokens of one private sluice, made fresh with openssl.

Every function writes files below `folder` and returns their paths. Secrets are
readable by their owner only.
"""
import base64
import hashlib
import json
import os
import secrets
import subprocess


def write_secret(path, text):
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(text)
    return path


def openssl(*args, folder):
    return subprocess.run(["openssl", *args], cwd=folder, check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def make_ec_key(folder, name):
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-out", name, folder=folder)
    path = os.path.join(folder, name)
    os.chmod(path, 0o600)
    return path


def make_certificate(folder):
    """A CA of our own and a server certificate by it: (ca, cert, key)."""
    make_ec_key(folder, "ca.key")
    openssl("req", "-x509", "-new", "-key", "ca.key", "-sha256", "-days", "30",
            "-subj", "/CN=sluice quickstart CA", "-out", "ca.pem",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign", folder=folder)
    key = make_ec_key(folder, "server.key")
    openssl("req", "-new", "-key", "server.key", "-subj", "/CN=localhost",
            "-out", "server.csr", folder=folder)
    extensions = os.path.join(folder, "server.ext")
    with open(extensions, "w") as out:
        out.write("subjectAltName=IP:127.0.0.1,DNS:localhost\n"
                  "basicConstraints=critical,CA:FALSE\n"
                  "keyUsage=critical,digitalSignature\n"
                  "extendedKeyUsage=serverAuth\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-days", "30", "-sha256", "-extfile", extensions,
            "-out", "server.pem", folder=folder)
    return os.path.join(folder, "ca.pem"), os.path.join(folder, "server.pem"), key


def make_account_key(folder):
    """The shop's signing key as a JWK (HS256)."""
    jwk = {"kty": "oct", "alg": "HS256", "kid": "shop-1",
           "k": base64url(secrets.token_bytes(32))}
    return write_secret(os.path.join(folder, "account.jwk"), json.dumps(jwk) + "\n")


def public_jwk(pem):
    """The public half of a P-256 PEM file; the kid is its RFC 7638 thumbprint."""
    der = openssl("pkey", "-in", pem, "-pubout", "-outform", "DER", folder=None)
    point = der[-64:]
    jwk = {"crv": "P-256", "kty": "EC", "x": base64url(point[:32]), "y": base64url(point[32:])}
    canonical = json.dumps(jwk, separators=(",", ":"), sort_keys=True).encode()
    return {**jwk, "alg": "ES256", "use": "sig",
            "kid": base64url(hashlib.sha256(canonical).digest())}


def make_pass_key(folder):
    """The key that signs passes and the key set that proves them: (pem, jwks)."""
    pem = make_ec_key(folder, "pass.key")
    jwks = os.path.join(folder, "pass.jwks")
    with open(jwks, "w") as out:
        json.dump({"keys": [public_jwk(pem)]}, out)
    return pem, jwks


def make_token(folder, name):
    return write_secret(os.path.join(folder, name), secrets.token_hex(32) + "\n")


def make_all(folder):
    """Everything a stack needs, each under the name that Stack knows."""
    os.makedirs(folder, mode=0o700)
    make_certificate(folder)
    make_account_key(folder)
    make_pass_key(folder)
    for name in ("ticket.key", "service.token", "operator.token"):
        make_token(folder, name)


def read_token(path):
    with open(path) as file:
        return file.read().strip()
