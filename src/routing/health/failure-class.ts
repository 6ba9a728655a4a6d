import type { ErrorCode, RouterError } from '../../core/errors.ts'

/** Scope of a circuit: the calls that share the failures which open it. */
export type HealthScope = 'address' | 'credential' | 'target'

/** Consequences of a failed attempt. */
export type FailureClass = {
  name: string
  /** Retry of the same target: after a growing wait, after the time that it named, or not at all. */
  same: 'backoff' | 'when_told' | 'never'
  /** Other targets that are asked: any, those with a larger context window, those that can do more of what is asked, or none. */
  next: 'any' | 'larger' | 'abler' | 'if_blocked' | 'never'
  /** The provider may have begun to act for the caller. */
  mayHaveBegun?: true
  /** Scope that the failure counts against, and how it stops calls immediately: until the time that was named, or for minutes. */
  health?: { scope: HealthScope; closes?: 'until_told' | 'long' }
}

const passing = { same: 'backoff', next: 'any' } as const
const aboutRequest = { same: 'never', next: 'abler' } as const
const ours = { same: 'never', next: 'never' } as const

const connection: FailureClass = { name: 'connection', ...passing, mayHaveBegun: true, health: { scope: 'address' } }
const failed: FailureClass = { name: 'failed', ...passing, mayHaveBegun: true, health: { scope: 'target' } }
const silent: FailureClass = {
  name: 'timeout',
  same: 'never',
  next: 'any',
  mayHaveBegun: true,
  health: { scope: 'target' },
}
const busy: FailureClass = {
  name: 'rate_limited',
  same: 'when_told',
  next: 'any',
  health: { scope: 'target', closes: 'until_told' },
}
const credential: FailureClass = {
  name: 'credential',
  same: 'never',
  next: 'any',
  health: { scope: 'credential', closes: 'long' },
}
const forbidden: FailureClass = {
  name: 'forbidden',
  same: 'never',
  next: 'any',
  health: { scope: 'target', closes: 'long' },
}
const gone: FailureClass = { name: 'gone', same: 'never', next: 'any', health: { scope: 'target', closes: 'long' } }
const tooLarge: FailureClass = { name: 'too_large', same: 'never', next: 'larger' }
/**
 * Class of a request for more than a provider gives one request of its limit for a minute: other requests may pass, and other providers may
 * give more.
 */
const tooMuch: FailureClass = { name: 'too_large', same: 'never', next: 'any' }
const blocked: FailureClass = { name: 'blocked', same: 'never', next: 'if_blocked' }
const refused: FailureClass = { name: 'refused', ...aboutRequest }
/** Class of a refusal because of losses: another target finds out by itself whether it loses anything, before it is asked. */
const unsupported: FailureClass = { name: 'refused', same: 'never', next: 'any' }
const own: FailureClass = { name: 'own', ...ours }

/** The classes of failures that a provider, or the router's request to it, can have. */
const classes: { readonly [code in ErrorCode]?: FailureClass } = {
  provider_unreachable: connection,
  provider_failed: failed,
  provider_overloaded: failed,
  provider_unreadable: failed,
  provider_cut: failed,
  provider_timeout: silent,
  rate_limited: busy,
  provider_refused: credential,
  quota_exhausted: credential,
  model_not_found: gone,
  context_length: tooLarge,
  too_large: tooLarge,
  content_blocked: blocked,
  invalid_request: refused,
  loss_refused: unsupported,
  previous_response_not_found: refused,
  not_found: refused,
}

/**
 * Returns the class of the error of an attempt. Refusals by plugins and errors of this router end the call, except those about what one target
 * can do.
 */
export function failureClass({
  code,
  provider,
  pluginRefusal,
  concernsModel,
  concernsSize,
}: RouterError): FailureClass {
  if (pluginRefusal) return own
  const known = concernsSize ? tooMuch : concernsModel ? forbidden : (classes[code] ?? own)
  // Without a provider nobody was asked.
  if (provider === undefined && known !== refused && known !== unsupported) return known === gone ? refused : own
  return known
}
