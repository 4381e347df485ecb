"""Whether a request is signed with an access key's secret, as `SDK-HMAC-SHA256` has it."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, unquote, urlsplit


def is_signed(method: str, target: str, headers: Mapping[str, str], body: bytes, ak: str, sk: str) -> bool:
    """Computed anew from what came, with nothing of the client's own code."""
    given = re.fullmatch(
        r"SDK-HMAC-SHA256 Access=(\S+), SignedHeaders=(\S+), Signature=([0-9a-f]{64})", headers.get("Authorization", "")
    )
    if given is None or given[1] != ak:
        return False
    parts = urlsplit(target)
    path = "/".join(quote(unquote(part), safe="~-_.") for part in parts.path.split("/"))
    query = sorted((quote(k, safe="~"), quote(v, safe="~")) for k, v in parse_qsl(parts.query, keep_blank_values=True))
    lines = [
        method,
        path if path.endswith("/") else f"{path}/",
        "&".join(f"{key}={value}" for key, value in query),
        *(f"{name}:{(headers.get(name) or '').strip()}" for name in given[2].split(";")),
        "",
        given[2],
        hashlib.sha256(body).hexdigest(),
    ]
    canonical = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    to_sign = f"SDK-HMAC-SHA256\n{headers.get('X-Sdk-Date')}\n{canonical}"
    return hmac.compare_digest(hmac.new(sk.encode(), to_sign.encode(), hashlib.sha256).hexdigest(), given[3])
