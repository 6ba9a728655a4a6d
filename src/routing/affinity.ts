import { LRUCache } from 'lru-cache'
import { isObject } from '../core/json.ts'
import { durationMs } from '../core/time.ts'
import { type Target, targetFacts } from '../manifest/target.ts'
import { type KeptFinding, timeAfter } from './findings.ts'

type AffinityOptions = {
  /** Milliseconds of a monotonic clock, the same one for all event loops that share findings. */
  now?: () => number
  /** Called with the target that a key is kept at: when that changes, and before the other event loops would forget it. */
  onFound?: (finding: KeptFinding) => void
}

type Kept = { target: string; until: number; changedAt: number; sharedUntil: number }

/** The target that each conversation, session or user is kept at. One for each event loop; it survives reloads. */
export class Affinity {
  /** Kept keys, opened when they are needed: many routers keep nothing. */
  #kept: LRUCache<string, Kept> | undefined
  readonly #now: () => number
  readonly #onFound: NonNullable<AffinityOptions['onFound']>

  constructor({ now = () => performance.now(), onFound = () => {} }: AffinityOptions = {}) {
    this.#now = now
    this.#onFound = onFound
  }

  /** Returns the id of the target that a key is kept at; undefined when it was idle for too long. */
  find(key: string): string | undefined {
    const kept = this.#kept?.get(key)
    return kept && this.#now() < kept.until ? kept.target : undefined
  }

  /** Keeps a key at a target, until it has been idle for so long. */
  keep(key: string, target: string, idleMs: number): void {
    const now = this.#now()
    const until = now + idleMs
    const known = this.#kept?.peek(key)
    if (known?.target === target && known.sharedUntil > now + idleMs / 2) {
      this.#set(key, { ...known, until })
    } else {
      const at = timeAfter(known?.changedAt ?? 0, now)
      this.#set(key, { target, until, changedAt: at, sharedUntil: until })
      this.#onFound({ kind: 'kept', at, key, target, until })
    }
  }

  /** Adopts a finding of another event loop; the later of two findings counts. */
  merge({ at, key, target, until }: KeptFinding): void {
    const known = this.#kept?.peek(key)
    if (known && at <= known.changedAt) return
    this.#set(key, { target, until, changedAt: at, sharedUntil: until })
  }

  /** Returns the bindings that were used last, for an event loop that knows nothing yet. */
  findings(): KeptFinding[] {
    const now = this.#now()
    const found: KeptFinding[] = []
    for (const [key, { target, until, changedAt: at }] of this.#kept?.entries() ?? []) {
      if (until > now) found.push({ kind: 'kept', at, key, target, until })
      if (found.length === maxShared) break
    }
    return found
  }

  #set(key: string, kept: Kept): void {
    this.#kept ??= new LRUCache({ max: maxKept })
    this.#kept.set(key, kept)
  }
}

/** Maximum number of kept keys, of some megabytes; the ones that were idle longest are forgotten. */
const maxKept = 50_000
const maxShared = 10_000

/**
 * Returns the time for which a provider keeps the prompt of a conversation in its cache after the last call, in milliseconds: the trait
 * `prompt_cache`, `{lifetime, extended}`. `isLong`: the request asks for an hour or more.
 */
export function cacheLifetimeMs(target: Target, isLong: boolean): number {
  const { prompt_cache: stated } = targetFacts(target.provider, target).traits
  if (!isObject(stated)) return unstatedMs
  const { lifetime, extended } = stated
  return (isLong ? durationIn(extended) : undefined) ?? durationIn(lifetime) ?? unstatedMs
}

function durationIn(value: unknown): number | undefined {
  return typeof value === 'string' ? durationMs(value) : undefined
}

/** Lifetime where the manifest does not state it. */
const unstatedMs = 300_000
