/** Range of a text that is a secret, in UTF-16 code units. */
export type SecretRange = { start: number; end: number }

/** Finds the secrets that rules of others know. */
export type SecretScanner = (text: string) => SecretRange[]

/** Tokens by the prefixes of their issuers. Every repetition has an end. */
const prefixed = new RegExp(
  `(?<![A-Za-z0-9_-])(?:${[
    'sk-[A-Za-z0-9_-]{20,250}',
    'ir-[A-Za-z0-9_-]{20,250}',
    '(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,250}',
    '(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}',
    'ABSK[A-Za-z0-9+/=]{100,300}',
    'gh[pousr]_[A-Za-z0-9]{20,250}',
    'github_pat_[A-Za-z0-9_]{22,250}',
    'gl(?:pat|dt|rt|rtr|ptt|cbt|oas|ft|soat|agent|imt|ffct)-[A-Za-z0-9_-]{20,300}',
    'xox[abeoprs]-[A-Za-z0-9-]{10,250}',
    'xapp-[0-9]-[A-Za-z0-9-]{20,250}',
    'AIza[A-Za-z0-9_-]{35}',
    'GOCSPX-[A-Za-z0-9_-]{28}',
    String.raw`ya29\.[A-Za-z0-9_-]{20,400}`,
    '(?:hf|gsk|npm|xai|pplx|r8|lin|lin_api|lin_oauth|shpat|shpss|shpca|shppa|whsec|nvapi|tvly|fw|csk|ntn|rpa|figd|figr|phc|phx|sbp|vcp|vci|vcr|vck|vca|cfut|cfat|sntryu|sntrys|pscale_tkn|pscale_pw|pscale_oauth|rubygems|glsa|glc|jina|tskey|voyage|pa|re|dckr|dckr_pat|dckr_oat|doppler|hookdeck)[_-][A-Za-z0-9_-]{20,250}',
    String.raw`SG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}`,
    String.raw`hv[sbr]\.[A-Za-z0-9_-]{20,300}`,
    String.raw`dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9_.-]{20,100}`,
    String.raw`[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,80}`,
    String.raw`pat[A-Za-z0-9]{14}\.[a-f0-9]{64}`,
    'do[por]_v1_[a-f0-9]{64}',
    'pypi-[A-Za-z0-9_-]{32,250}',
    'dapi[a-f0-9]{32}(?:-[0-9])?',
    'PMAK-[a-f0-9]{24}-[a-f0-9]{34}',
    'ATATT3[A-Za-z0-9_=-]{60,250}',
    'NRAK-[A-Z0-9]{27}',
    'xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}',
    'ops_eyJ[A-Za-z0-9_-]{100,2000}',
    'AGE-SECRET-KEY-1[A-Z0-9]{58}',
    'sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,60}',
    'key-[a-f0-9]{32}',
    'SK[a-f0-9]{32}',
    '[0-9]{8,10}:AA[A-Za-z0-9_-]{33}',
    String.raw`[MNO][A-Za-z0-9_-]{23,25}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}`,
    String.raw`eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{4,8000}\.[A-Za-z0-9_-]{0,1000}`,
  ].join('|')})(?![A-Za-z0-9_-])`,
  'g',
)
const pem =
  /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!-)){1,16000}-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----/g
/** Addresses that are secrets themselves. */
const webhook =
  /\bhttps:\/\/(?:hooks\.slack\.com\/(?:services|workflows|triggers)|discord(?:app)?\.com\/api\/webhooks)\/[\w/-]{20,200}/g
/** The password in an address, the signature of one that is shared. */
const inAddress =
  /:\/\/[^\s:@/?#"'<>]{0,64}:([^\s:@/"'<>]{3,256})@|[?&](?:sig|signature|x-amz-signature|x-goog-signature)=([\w%+/=-]{20,512})/gi
const header =
  /(?<![A-Za-z0-9])(?:basic\s{1,3}([A-Za-z0-9+/_-]{6,512}={0,2})|(?:bearer|apikey|digest)\s{1,3}([\w.~+/=-]{16,4096}))(?![\w+/=-])/gi

/** Finds secrets that are known by their form, with the rules of a scanner where there is one. */
export function findKnownSecrets(text: string, scan?: SecretScanner): SecretRange[] {
  const found: SecretRange[] = []
  for (const pattern of [prefixed, pem, webhook]) {
    for (const { index, 0: match } of text.matchAll(pattern)) found.push({ start: index, end: index + match.length })
  }
  for (const { index, 0: match, 1: password, 2: signature } of text.matchAll(inAddress)) {
    const secret = password ?? signature ?? ''
    if (isPlaceholder(secret)) continue
    const end = index + match.length - (password === undefined ? 0 : 1)
    found.push({ start: end - secret.length, end })
  }
  for (const { index, 0: match, 1: basic, 2: token } of text.matchAll(header)) {
    const secret = basic ?? token ?? ''
    const end = index + match.length
    if (basic === undefined ? isMixed(token ?? '') : isCredentials(basic))
      found.push({ start: end - secret.length, end })
  }
  if (scan) found.push(...scan(text))
  return found
}

/** Returns ranges in the order of the text, those that overlap as one. */
export function mergedRanges(ranges: readonly SecretRange[]): SecretRange[] {
  const merged: SecretRange[] = []
  for (const { start, end } of [...ranges].sort((one, other) => one.start - other.start)) {
    const last = merged.at(-1)
    if (last && start < last.end) last.end = Math.max(last.end, end)
    else merged.push({ start, end })
  }
  return merged
}

/** Checks whether a key has both letters and digits: words have no digits, numbers no letters. */
export function isMixed(key: string): boolean {
  return /\d/.test(key) && /[A-Za-z]/.test(key)
}

/** Checks whether a text stands for a value that is elsewhere: a variable, or a word in brackets. */
function isPlaceholder(text: string): boolean {
  return /^(?:\$\{?[A-Za-z_]\w*\}?|<[\w -]+>|\{\{?[\w. -]+\}?\}|\*+|x+)$/.test(text)
}

/** Checks whether base64 is that of a name and a password. */
function isCredentials(base64: string): boolean {
  const decoded = Buffer.from(base64, 'base64').toString('latin1')
  return /^[\x20-\x7e]{0,200}:[\x20-\x7e]{0,300}$/.test(decoded)
}

const names = [
  ...[
    'pass(?:word|wd|phrase|code)',
    'passwort',
    'pwd',
    'mot de passe',
    'contraseña',
    'secret',
    'api[ _-]?key',
    'apikey',
  ],
  ...[
    '(?:access|secret|private|signing|encryption|account|master|auth)[ _-]?key(?:[ _-]?id)?',
    'secret[ _-]?access[ _-]?key',
  ],
  ...['(?:access|auth|refresh|id|session|bot|api|bearer|security|oauth|deploy|personal)[ _-]?token', 'token', 'bearer'],
  ...['client[ _-]?secret', 'credentials?', 'authorization', 'connection[ _-]?string', '_authToken'],
]

/**
 * Values that are assigned to a name such as `DB_PASSWORD`, `client_secret` or `aws_secret_access_key`, in files of settings, JSON, YAML,
 * code and shells; also in JSON that is a text of other JSON.
 */
const assigned = new RegExp(
  String.raw`(?:${names.join('|')})(?![a-z])\w{0,30}\\{0,3}["'\x60]?\]?\s{0,3}(?::=|=>|[:=])\s{0,3}(?:(?:basic|bearer|token)\s{1,3})?(?:\\{0,3}["'\x60]([^"'\x60\\\r\n]{4,512})|([^\s"'\x60,;<>(){}|&\\]{4,512}))`,
  'giu',
)

/** Finds values that a text assigns to the name of a secret. */
export function findAssignedSecrets(text: string): SecretRange[] {
  const found: SecretRange[] = []
  for (const { index, 0: match, 1: quoted, 2: plain } of text.matchAll(assigned)) {
    const value = quoted ?? plain ?? ''
    const end = index + match.length
    if (!isPlaceholder(value)) found.push({ start: end - value.length, end })
  }
  return found
}

/** Names of members whose values are secrets whatever they look like, without signs between words. */
const secretNames =
  /(?:^|_)(?:pass(?:word|wd|phrase|code)|pwd|secret|apikey|authorization|credentials?)$|(?:api|access|secret|private|signing|encryption|account|master|auth)_?key$|(?:access|auth|refresh|session|bot|api|bearer|security|oauth|authorization)_?token$|client_?secret$|connection_?string$/

/** Checks whether a member of this name is a secret. */
export function namesSecret(name: string): boolean {
  if (name.length > 100) return false
  const words = name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').replace(/[\s.-]+/g, '_')
  return secretNames.test(words.toLowerCase())
}
