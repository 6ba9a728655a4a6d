import type { JsonObject } from '../../core/json.ts'
import type { ProviderSettings } from '../../manifest/read/references.ts'
import { type ForeignFile, type MemberPath, pathText } from './foreign-file.ts'

/**
 * Remark about something that has no equivalent, or not quite. `none`: it is lost. `near`: it was imported as something
 * similar. `manual`: it needs a decision, or a step of the operator.
 */
export type Remark = { effect: 'none' | 'near' | 'manual'; path: string; message: string }

/** A name that clients call, and the models that serve it. */
export type PlannedName = {
  name: string
  targets: { target: string; weight?: number }[]
  /** The rules of a policy: `sort`, `on_blocked` … */
  rules: JsonObject
  /** Path of the entry in the other gateway's file. */
  path: string
}

/** A group of keys. The monthly limit is in USD, 0 for none. */
export type PlannedGroup = { name: string; monthlyLimit: number; path: string }

/** A key whose secret only its clients know. `hash` is the SHA-256 of it in hexadecimal. */
export type PlannedKey = {
  hash: string
  /** Text by which an operator recognizes it. */
  prefix: string
  /** Members of the management API for a new key, with the name of its group instead of an id. */
  body: JsonObject
  group?: string
  path: string
}

/** Files and records that an import creates, and remarks about what it does not. */
export type ImportPlan = {
  /** The gateway that the file is of. */
  from: string
  /** Settings of providers, by slug. */
  providers: { [slug: string]: ProviderSettings }
  /** Manifests of further providers, by slug. */
  manifests: { [slug: string]: string }
  /** Other sections of the configuration. */
  settings: { [section: string]: JsonObject }
  /** Variables for `.env`. */
  variables: { [name: string]: string }
  names: PlannedName[]
  groups: PlannedGroup[]
  keys: PlannedKey[]
  remarks: Remark[]
}

/** Returns a plan without anything. */
export function emptyPlan(from: string): ImportPlan {
  return {
    from,
    providers: {},
    manifests: {},
    settings: {},
    variables: {},
    names: [],
    groups: [],
    keys: [],
    remarks: [],
  }
}

/** Hints for members that have no equivalent by name, by a pattern of their paths. */
export type Hints = readonly (readonly [pattern: RegExp, hint: string])[]

/** Adds remarks about all members of a file that were not used. */
export function remarkUnused(plan: ImportPlan, file: ForeignFile, hints: Hints): void {
  for (const path of file.unused()) {
    const text = pathText(path)
    const [, hint] = hints.find(([pattern]) => pattern.test(text)) ?? []
    plan.remarks.push({ effect: 'none', path: text, message: hint ?? 'no equivalent' })
  }
}

/** Returns a function that adds remarks about members of a file. */
export function remarker(plan: ImportPlan) {
  return (effect: Remark['effect'], path: MemberPath | string, message: string): void => {
    plan.remarks.push({ effect, path: typeof path === 'string' ? path : pathText(path), message })
  }
}
