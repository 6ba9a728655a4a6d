import { isObject } from '../core/json.ts'
import { type Operation, operations } from '../core/operation.ts'
import { didYouMean } from '../manifest/check/did-you-mean.ts'
import { schemeNames } from '../manifest/read/auth.ts'
import { functionNames } from '../mapping/mapping.ts'
import { maxHeldCharacters, maxHeldMs } from './held-events.ts'
import { maxTimeoutMs } from './settings.ts'

/** Problem of a plugin's exports or results, and a pattern to look for in its text. */
export type ShapeProblem = { message: string; at: RegExp }

/** The hooks that a plugin may return. */
const operationHooks = ['chat', ...(Object.keys(operations) as Operation[])] as const
export const hookNames = [
  'authenticate',
  'request',
  ...operationHooks,
  'targets',
  'send',
  'event',
  'reply',
  'check',
  'record',
] as const
const otherMembers = ['hold', 'content', 'functions', 'auth']
const pluginMembers = ['description', 'options', 'renamedOptions', 'timeoutMs', 'onError', 'guards', 'setup']
const topOfFile = /^/
const exported = /\bexport default\b/

/** Returns the problem of the default export of a plugin; undefined when there is none. */
export function pluginProblem(plugin: unknown): ShapeProblem | undefined {
  if (plugin === undefined) return { message: 'the file needs `export default definePlugin({ … })`', at: topOfFile }
  if (!isObject(plugin)) return { message: 'the default export must be a plugin: an object with `setup`', at: exported }
  const { setup, options, renamedOptions = {}, timeoutMs, onError, guards } = plugin as { [member: string]: unknown }
  const unknown = unknownMember(plugin, pluginMembers)
  if (unknown) return unknown
  if (typeof setup !== 'function') return { message: 'the plugin needs a function `setup`', at: exported }
  if (options !== undefined && !isObject(options)) return wrong('options', 'a JSON schema')
  const areNames = isObject(renamedOptions) && Object.values(renamedOptions).every((name) => typeof name === 'string')
  if (!areNames) return wrong('renamedOptions', 'an object of names')
  if (onError !== undefined && onError !== 'open' && onError !== 'closed') return wrong('onError', "'open' or 'closed'")
  if (guards !== undefined && typeof guards !== 'boolean') return wrong('guards', 'true or false')
  if (guards && onError !== 'closed')
    return { message: "a plugin with `guards: true` must declare `onError: 'closed'`", at: wordOf('guards') }
  const isTime =
    timeoutMs === undefined || (typeof timeoutMs === 'number' && timeoutMs > 0 && timeoutMs <= maxTimeoutMs)
  return isTime ? undefined : wrong('timeoutMs', `a number above 0 and at most ${maxTimeoutMs}`)
}

/** Returns the problem of the hooks that a plugin returns; undefined when there is none. */
export function hooksProblem(hooks: unknown): ShapeProblem | undefined {
  if (!isObject(hooks)) return { message: '`setup` must return an object of hooks', at: /\bsetup\b/ }
  const given = hooks as { [member: string]: unknown }
  const unknown = unknownMember(hooks, [...hookNames, ...otherMembers])
  if (unknown) return unknown
  const noFunction = hookNames.find((name) => given[name] !== undefined && typeof given[name] !== 'function')
  if (noFunction) return wrong(noFunction, 'a function')
  const isHolding = given.check !== undefined || given.event !== undefined
  if (given.hold !== undefined && !(isHolding && isHold(given.hold))) return wrong('hold', holdForm)
  if (given.content !== undefined && !isContent(given.content)) return wrong('content', contentForm)
  return functionsProblem('functions', given.functions) ?? functionsProblem('auth', given.auth) ?? namesProblem(given)
}

const contentForm = 'an object with the functions `find` and `deleteOf`'

function isContent(content: unknown): boolean {
  if (!isObject(content)) return false
  const { find, deleteOf } = content as { [member: string]: unknown }
  return typeof find === 'function' && typeof deleteOf === 'function'
}

const holdForm = `{ characters: <1 to ${maxHeldCharacters}> } or { sentences: true }, with a \`maxMs\` up to ${maxHeldMs} if need be, of a plugin with \`check\` or \`event\``

function isHold(hold: unknown): boolean {
  if (!isObject(hold)) return false
  const { characters, sentences, maxMs = 1, ...others } = hold
  const isTime = isWithin(maxMs, maxHeldMs) && Object.keys(others).length === 0
  return (
    isTime && (sentences === undefined ? isWithin(characters, maxHeldCharacters) : sentences === true && !characters)
  )
}

function isWithin(value: unknown, most: number): boolean {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value <= most
}

/** Finds an unknown member. Instances of classes may have members of their own. */
function unknownMember(value: object, known: readonly string[]): ShapeProblem | undefined {
  if (Object.getPrototypeOf(value) !== Object.prototype) return undefined
  const name = Object.keys(value).find((member) => !known.includes(member))
  if (name === undefined) return undefined
  const choice = didYouMean(name, known) || `; known here: ${known.join(', ')}`
  return { message: `unknown member \`${name}\`${choice}`, at: wordOf(name) }
}

function functionsProblem(member: string, functions: unknown): ShapeProblem | undefined {
  if (functions === undefined) return undefined
  const isRight = isObject(functions) && Object.values(functions).every((value) => typeof value === 'function')
  return isRight ? undefined : wrong(member, 'an object of functions')
}

function namesProblem({
  functions = {},
  auth = {},
}: {
  functions?: unknown
  auth?: unknown
}): ShapeProblem | undefined {
  for (const name of Object.keys(functions as object)) {
    if (!/^[A-Za-z]\w*$/.test(name))
      return { message: `\`${name}\` cannot be the name of a function`, at: wordOf('functions') }
    if (functionNames.includes(name))
      return { message: `mappings already have a function \`$${name}\`: choose another name`, at: wordOf(name) }
  }
  const scheme = Object.keys(auth as object).find(
    (name) => !/^[a-z][a-z0-9-]*$/.test(name) || schemeNames.includes(name),
  )
  if (scheme === undefined) return undefined
  if (schemeNames.includes(scheme))
    return { message: `manifests already have a scheme \`${scheme}\`: choose another name`, at: wordOf(scheme) }
  return { message: `\`${scheme}\` cannot be the name of a scheme: small letters, digits and -`, at: wordOf('auth') }
}

function wrong(member: string, what: string): ShapeProblem {
  return { message: `\`${member}\` must be ${what}`, at: wordOf(member) }
}

function wordOf(name: string): RegExp {
  return new RegExp(`(?<![\\w$])${name.replace(/[^\w]/g, '\\$&')}(?![\\w$])`)
}
