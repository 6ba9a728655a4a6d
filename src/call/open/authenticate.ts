import { LRUCache } from 'lru-cache'
import type { Key } from '../../access/keys.ts'
import { RouterError } from '../../core/errors.ts'
import { secretPrefix } from '../../core/secrets.ts'
import { freezeData } from '../../plugin/call-view.ts'
import type { Caller, MaybePromise } from '../../plugin/contract.ts'
import { isOn, type LoadedPlugin, unavailablePlugin } from '../../plugin/loaded.ts'
import { callerResult } from '../../plugin/results.ts'
import { RunningPlugin } from '../../plugin/running.ts'
import type { Call, Services } from '../types.ts'

type Presented = Pick<Call, 'id' | 'secret' | 'headers' | 'signal'>
type AuthenticationServices = Pick<Services, 'authenticate' | 'authenticateById' | 'revalidate' | 'rulesOf' | 'plugins'>

/**
 * Returns the key of a call: that of its secret, or the one that a plugin finds for it. Plugins never get the secrets of this router's keys.
 * Throws RouterError 401, 403, 503 where the plugin that may know the caller is unavailable, or the refusal of a plugin.
 */
export function authenticate(call: Presented, services: AuthenticationServices): MaybePromise<Key> {
  const { plugins } = services
  const asked = plugins?.loaded.filter(mayAuthenticate) ?? []
  if (asked.length === 0 || call.secret?.startsWith(secretPrefix)) return services.authenticate(call.secret)
  return authenticatedBy(asked, call, services)
}

function mayAuthenticate({ hooks, enabled, unavailable }: LoadedPlugin): boolean {
  return enabled && (hooks.authenticate !== undefined || unavailable !== undefined)
}

async function authenticatedBy(
  asked: readonly LoadedPlugin[],
  { id, secret, headers = {}, signal }: Presented,
  services: AuthenticationServices,
): Promise<Key> {
  const unknown = { organization: '', key: '', names: { key: '', organization: '' }, labels: {} }
  const facts = { id, ...unknown, api: '', operation: 'chat' as const, requested: '', stream: false, headers, signal }
  for (const plugin of asked) {
    if (!services.plugins || !plugin.hooks.authenticate) continue
    const running = new RunningPlugin(plugin, { ...facts, body: () => ({}) }, services.plugins.faults)
    const caller = await running.run('authenticate', { given: freezeData({ secret }), check: callerResult })
    if (caller) return await keyOf(caller, plugin, services)
  }
  try {
    return await services.authenticate(secret)
  } catch (thrown) {
    const missing = asked.find(({ unavailable }) => unavailable !== undefined)
    throw missing ? unavailablePlugin(missing) : thrown
  }
}

/** Returns the current state of the key of a call. Throws or rejects with RouterError where it may not call any more. */
export function revalidated(key: Key, services: AuthenticationServices): MaybePromise<Key> {
  const external = known.get(key)
  return external ? keyOf(external.caller, external.plugin, services) : services.revalidate(key)
}

async function keyOf(caller: Caller, plugin: LoadedPlugin, services: AuthenticationServices): Promise<Key> {
  const key =
    'key' in caller ? await services.authenticateById?.(caller.key) : await externalKey(caller, plugin, services)
  const rules = key && (await services.rulesOf(key.organization))
  if (key && rules && isOn(plugin, { ...key, rules: rules.plugins, keyRules: key.plugins })) return key
  throw new RouterError('forbidden', `The plugin '${plugin.name}' may not authenticate callers of this organization.`)
}

type External = Exclude<Caller, { key: string }>

/** The keys of callers who have none: the same caller has the same object, as values derived from it are cached by it. */
const keys = new LRUCache<string, Key>({ max: 10_000 })
const known = new WeakMap<Key, { caller: External; plugin: LoadedPlugin }>()

/** Returns a key for a caller of an organization who has none. It belongs to accounts that exist, whose limits hold. */
async function externalKey(caller: External, plugin: LoadedPlugin, services: AuthenticationServices): Promise<Key> {
  const { organization, group } = caller
  if (!(await exists(organization, group, services))) {
    const message = `The plugin '${plugin.name}' named an organization or a group that does not exist.`
    throw new RouterError('forbidden', message)
  }
  const name = JSON.stringify([plugin.name, caller])
  const key = keys.get(name) ?? newKey(caller, plugin.name)
  keys.set(name, key)
  known.set(key, { caller, plugin })
  return key
}

async function exists(
  organization: string,
  group: string | undefined,
  { rulesOf }: Pick<AuthenticationServices, 'rulesOf'>,
): Promise<boolean> {
  try {
    const { groupNames } = await rulesOf(organization)
    return group === undefined || groupNames?.has(group) === true
  } catch {
    return false
  }
}

function newKey(caller: External, plugin: string): Key {
  const { organization, id, name = id, labels = {}, limits = {} } = caller
  const { monthly_usd, requests_per_minute, tokens_per_minute, concurrent_calls } = limits
  return {
    id: `${plugin}:${organization}:${id}`,
    organization,
    name,
    prefix: '',
    permissions: { manage: 'none', completions: 'write', operate: 'none' },
    labels: { ...labels },
    monthlyLimitNano: monthly_usd === undefined ? null : BigInt(Math.round(monthly_usd * 1e9)),
    groupId: caller.group ?? null,
    accessList: caller.models ?? null,
    limits: {
      requestsPerMinute: requests_per_minute ?? null,
      tokensPerMinute: tokens_per_minute ?? null,
      concurrentCalls: concurrent_calls ?? null,
    },
    plugins: {},
    createdAt: 0,
    expiresAt: null,
  }
}
