import type { ClientApi } from '../api/client-api.ts'
import { asRouterError, RouterError } from '../core/errors.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import type { NeutralRequest } from '../core/request.ts'
import type { Target } from '../manifest/target.ts'
import { patchRequest, targetFacts } from '../manifest/translate.ts'
import { promptEstimate } from '../money/meter.ts'
import { resolve } from '../routing/resolve.ts'
import { askJson } from '../upstream/call.ts'
import type { Door } from '../upstream/http-client.ts'
import { admitUnpaid } from './admission.ts'
import type { Outgoing, Rooms } from './gateway.ts'
import type { Call } from './provider-call.ts'

type CountCall = Omit<Call, 'strict' | 'id'>

/**
 * How many tokens a request would take in: `{input_tokens}` as the provider counts them where it does, else our
 * estimate with `estimated: true`. Nothing is generated, so nothing is paid and no row is written,
 * but it is a request to the limits. Throws RouterError.
 */
export async function countTokens(call: CountCall, rooms: Rooms): Promise<Outgoing> {
  const shown = rooms.authenticate(call.secret)
  const body = await call.readBody()
  // A slow body must not outlive its key.
  const key = rooms.again(shown)
  const rules = rooms.rulesOf(key.organization)
  const request = rooms.seals.restore(key.organization, readCountable(call.face, body))
  const scope = { rules, accessList: key.accessList }
  const target = resolve(request.model, rooms.directory, scope)[0] as Target
  const taken = admitUnpaid({ key, rules }, rooms.admission)
  try {
    const counted = await countAt(target, { call, request, body: body as JsonObject, door: rooms.door })
    return { headers: taken.headers, body: JSON.stringify(counted) }
  } catch (thrown) {
    throw asRouterError(thrown).withHeaders(taken.headers)
  } finally {
    taken.settle(0)
  }
}

type Countable = { call: CountCall; request: NeutralRequest; body: JsonObject; door: Door }

async function countAt(target: Target, { call, request, body, door }: Countable): Promise<JsonObject> {
  const { provider, model } = target
  if (!provider.count || provider.sameAs !== call.face.api) {
    return { input_tokens: promptEstimate(request), estimated: true }
  }
  const edited = call.face.editRequest(body, { model, stream: false, dropped: [] })
  const { signal, passed = [] } = call
  const outgoing = {
    path: provider.count.path,
    body: await patchRequest(provider, edited, targetFacts(provider, target)),
    signal,
    passed,
  }
  const counted = await askJson(target, outgoing, door)
  if (typeof counted.input_tokens === 'number') return counted
  const message = 'The provider sent a count without `input_tokens`.'
  throw new RouterError('provider_unreadable', message, { provider: provider.slug })
}

/** What is only counted needs no limit. */
function readCountable(face: ClientApi, body: unknown): NeutralRequest {
  return face.read(isObject(body) ? { max_tokens: 0, ...body } : body)
}
