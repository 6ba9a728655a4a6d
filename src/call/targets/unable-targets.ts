import type { ClientApi } from '../../api/client-api.ts'
import { namesInBody } from '../../api/wire-fields.ts'
import { RouterError } from '../../core/errors.ts'
import type { NeutralRequest } from '../../core/request.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import { estimatePromptTokens } from '../../money/meter.ts'
import type { Targets } from '../../routing/names/resolve.ts'
import { contextNeed, declaresAll, type Need, needsOf, nothingDroppedNeed } from '../../routing/needs.ts'
import type { Trial } from '../../routing/types.ts'

/** A conversation, by what it needs of its targets. */
export type NeedyCall = { request: NeutralRequest; strict: boolean; clientApi: Pick<ClientApi, 'wireNames'> }

/** A target that is not tried, and why. */
export type Skipped = { target: Target; reason: string }

/** The targets that can take a call, and those that cannot. */
export type AbleTargets = { targets: Targets; skipped: readonly Skipped[] }

const none: readonly Skipped[] = []

/**
 * Leaves out the targets that are known to be unable to take a call, where others are not. A name with one target still leads to it: its
 * losses are reported. Throws RouterError 400 when each of several would lose something.
 */
export function withoutUnable(targets: Targets, call: NeedyCall): AbleTargets {
  if (targets.length === 1) return { targets, skipped: none }
  const { request, strict } = call
  const needs = [...needsOf(request), ...roomNeeds(targets, request), ...(strict ? [nothingDroppedNeed(request)] : [])]
  if (needs.length === 0) return { targets, skipped: none }
  const lacking = targets.map((target) => ({ target, lacks: needs.filter((need) => need.isLacked(target)) }))
  if (lacking.every(({ lacks }) => lacks.length === 0)) return { targets, skipped: none }
  const able = ableOf(lacking, () => true) ?? ableOf(lacking, ({ isCertain }) => isCertain)
  if (!able) throw refused(lacking, call)
  const skipped = lacking.filter(({ target }) => !able.includes(target))
  return { targets: able, skipped: skipped.map(({ target, lacks }) => ({ target, reason: reasonOf(lacks) })) }
}

type Lacking = { target: Target; lacks: readonly Need[] }

function ableOf(lacking: readonly Lacking[], counts: (need: Need) => boolean): Targets | undefined {
  const [first, ...others] = lacking.filter(({ lacks }) => !lacks.some(counts)).map(({ target }) => target)
  return first && [first, ...others]
}

/** Returns the needs for room. Prompts are measured only where the targets have more or less room. */
function roomNeeds(targets: Targets, request: NeutralRequest): Need[] {
  const rooms = targets.map(({ entry }) => entry?.context_window ?? Infinity)
  return rooms.every((room) => room === rooms[0]) ? [] : [contextNeed(estimatePromptTokens(request))]
}

function reasonOf(lacks: readonly Need[]): string {
  return lacks.map(({ lack }) => lack).join(', ')
}

function refused(lacking: readonly Lacking[], { request, clientApi }: NeedyCall): RouterError {
  const reasons = lacking.map(({ target, lacks }) => `${targetId(target)} ${reasonOf(lacks)}`)
  const message = `No target of '${request.model}' can take this request: ${reasons.join('; ')}.`
  const [first] = lacking.flatMap(({ lacks }) => lacks.filter(({ isCertain }) => isCertain))
  const [param] = first ? namesInBody(clientApi.wireNames(first.field), request.origin.body) : []
  return new RouterError('invalid_request', message, param === undefined ? {} : { param })
}

/** Returns a comparison that finds which of two targets can take a call that the other found too large, or refused. */
export function comparing(request: NeutralRequest, promptTokens: number): NonNullable<Trial<unknown>['canTake']> {
  return (other, refusedBy, how) => {
    const { max_output_tokens: output = 0 } = request
    if (how === 'larger') return isLarger(other, refusedBy, promptTokens + output)
    const needs = [...needsOf(request), nothingDroppedNeed(request)]
    return declaresAll(other, needs) && !declaresAll(refusedBy, needs)
  }
}

/** Checks whether a target has more room than one that had too little for so many tokens. */
export function isLarger(other: Target, refusedBy: Target, tokens: number): boolean {
  const room = other.entry?.context_window
  const tooSmall = refusedBy.entry?.context_window
  return room !== undefined && (tooSmall === undefined ? room >= tokens : room > tooSmall)
}
