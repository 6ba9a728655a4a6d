import type { Lookups } from '../../access/lookups.ts'
import type { ResourceUse } from '../../api/resource-uses.ts'
import type { RestrictedField } from '../../api/restricted-fields.ts'
import { RouterError } from '../../core/errors.ts'
import { matchesIdPattern } from '../../core/id-patterns.ts'
import { isObject, type Json } from '../../core/json.ts'
import { type Target, targetId } from '../../manifest/target.ts'
import type { AccountResources, RestrictedBody } from '../types.ts'

/** A request, and what decides which resources of accounts it may name. */
type NamingCall = Pick<RestrictedBody, 'resources' | 'operation'> & {
  organization: string
  account: AccountResources
  lookups: Lookups
  isCataloged?: (target: Target) => boolean
}

/** Maximum number of things that one request may name: each is looked up. */
const maxUses = 1_000

/** Returns the error for something that the account at a provider keeps and that the organization may not use. */
export function refusedResource(
  target: Target,
  { organization, account, lookups, resources, isCataloged, operation }: NamingCall,
): RouterError | undefined {
  const { provider, model } = target
  const { slug } = provider
  const uses: ResourceUse[] = [...resources.uses]
  for (const field of provider.restricted ?? []) {
    if (field.rule === 'resource') uses.push(...usesOfField(resources.body, field))
  }
  if (ofAccount.test(model) && isCataloged?.(target) === false) uses.push({ path: 'model', id: model })
  const checked = new Set<string>()
  for (const { path, id, signer } of uses) {
    // Reasoning of others is not sent, and other formats have no ids.
    const isSent = signer === undefined || (signer === provider.signer && provider.sameAs === 'responses')
    if (!isSent || checked.has(id)) continue
    checked.add(id)
    if (isVoice(path, operation) && target.entry?.voices?.includes(id)) continue
    if (checked.size > maxUses) return tooMany(path)
    const isAllowed =
      account.isListed(organization, slug, id) ||
      lookups.find(`owner of ${id}`, () => account.isOwn(organization, id), true)
    if (!isAllowed) return refusal({ path, id }, target, organization)
  }
  return undefined
}

/** Names of models that only one account has: fine-tuned ones, deployments, stored presets. */
const ofAccount = /^(?:ft:|arn:|projects\/|tunedModels\/|ep-|endpoints\/)|:ft[:-]|@preset\//

/** A voice that the catalog lists is there for everybody. */
function isVoice(path: string, operation: string | undefined): boolean {
  return path === 'audio.voice.id' || (operation === 'speech' && /^voice(?:\.id)?$/.test(path))
}

/** Returns the values of a field that a manifest declares, without those that the provider offers everybody. */
function usesOfField(body: Json, { name, public: offered = [] }: RestrictedField): ResourceUse[] {
  const values = name
    .split('.')
    .reduce<(Json | undefined)[]>(
      (all, step) =>
        all
          .flatMap((value) => (Array.isArray(value) ? value : [value]))
          .map((value) => (isObject(value) ? value[step] : undefined)),
      [body],
    )
  const ids = values.flat().flatMap((value) => (isObject(value) ? [value.id] : [value]))
  return ids.flatMap((id) => {
    return typeof id === 'string' && id !== '' && !matchesIdPattern(offered, id) ? [{ path: name, id }] : []
  })
}

function refusal({ path, id }: ResourceUse, target: Target, organization: string): RouterError {
  const shown = id.length > maxShown ? `${id.slice(0, maxShown)}…` : id
  const message = `'${path}' names '${shown}', which the operator's account at '${targetId(target)}' keeps, and your organization may not use it. The operator can allow that by the setting organizations.${organization}.resources.`
  return new RouterError('forbidden', message, { param: path })
}

/** Characters of an id in a message. */
const maxShown = 200

function tooMany(path: string): RouterError {
  const message = `This request names more than ${maxUses} files and other things that providers keep.`
  return new RouterError('invalid_request', message, { param: path })
}
