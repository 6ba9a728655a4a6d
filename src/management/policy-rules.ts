import {
  type Check,
  defined,
  fieldsOf,
  filledText,
  integer,
  number,
  oneOf,
  optional,
  refuse,
  required,
} from '../api/check.ts'
import { isObject, type JsonObject } from '../core/json.ts'
import type { RoutingFile, TargetFile } from '../core/routing/policy-file.ts'
import { afterBlocks, afterCuts, largestWeight, mostRetries, sorts, stickiness } from '../core/routing/rules.ts'
import { duration, onlyMembers } from './read.ts'

const checks: { readonly [name in keyof Required<RoutingFile>]: Check<NonNullable<RoutingFile[name]>> } = {
  sort: oneOf(sorts),
  sticky: oneOf(stickiness),
  retries: integer(0, mostRetries),
  first_event: duration(1),
  total: duration(1),
  retry_after: duration(0),
  on_cut: oneOf(afterCuts),
  on_blocked: oneOf(afterBlocks),
}

/** The fields of a policy that say how its targets are asked. */
export const routingFields = Object.keys(checks)

/** The rules that a policy states; null states nothing. Throws RouterError 400. */
export function rulesFrom(members: JsonObject): RoutingFile {
  return fieldsOf<RoutingFile>(members, Object.entries(checks))
}

/** A target as it is written: a model, or `{ target, weight }`. */
export const weightedTarget: Check<TargetFile> = (value, path) => {
  if (typeof value === 'string') return filledText(value, path)
  if (!isObject(value)) refuse(path, 'the id of a model, or an object of a `target` and its `weight`', value)
  onlyMembers(value, ['target', 'weight'], `${path}.`)
  const target = required(value.target, `${path}.target`, 'the id of a model', filledText)
  return { target, ...defined({ weight: optional(value.weight, `${path}.weight`, number(0, largestWeight)) }) }
}
