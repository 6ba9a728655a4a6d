import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { compileFunction } from 'node:vm'
import type { ErrorObject } from 'ajv'
import type { Ajv2020 } from 'ajv/dist/2020.js'
import type { JsonObject } from '../../core/json.ts'
import { type FileCache, noCache } from '../read/file-cache.ts'

/** The kinds of files, each with its published JSON schema in `schemas/`. */
export type FileKind = 'provider' | 'dialect' | 'catalog' | 'config'

/** Whether a value has the form of its kind; if it has not, `errors` says why. */
export type Validator = { (value: unknown): unknown; errors?: ErrorObject[] | null }

/** A published schema as JSON. */
export function readSchema(kind: FileKind): JsonObject {
  return JSON.parse(readFileSync(join(import.meta.dirname, `../../../schemas/${kind}.schema.json`), 'utf8'))
}

/**
 * Validators by kind, whose compiled schemas are kept in the cache. Schemas are compiled when a file of their kind is first checked,
 * unless an earlier process has done so: at most starts no file has changed.
 */
export function createValidators(cache: FileCache): (kind: FileKind) => Validator {
  const made = new Map<FileKind, Validator>()
  return (kind) => {
    const validator = made.get(kind) ?? keptValidator(kind, cache) ?? compiledValidator(kind, cache)
    made.set(kind, validator)
    return validator
  }
}

let ofProcess = { cache: noCache, validatorOf: createValidators(noCache) }

/** The validator of a kind. */
export function validatorOf(kind: FileKind): Validator {
  return ofProcess.validatorOf(kind)
}

/** Where this process keeps compiled schemas for the next one. */
export function keepValidatorsIn(cache: FileCache): void {
  if (cache !== ofProcess.cache) ofProcess = { cache, validatorOf: createValidators(cache) }
}

const require = createRequire(import.meta.url)

function keptValidator(kind: FileKind, cache: FileCache): Validator | undefined {
  const code = cache.read(aboutOf(kind))
  if (typeof code !== 'string') return undefined
  const module: { exports: unknown } = { exports: {} }
  compileFunction(code, ['module', 'exports', 'require'])(module, module.exports, require)
  return module.exports as Validator
}

let ajv: Ajv2020 | undefined

function compiledValidator(kind: FileKind, cache: FileCache): Validator {
  ajv ??= compiler()
  const compiled = ajv.getSchema(`${kind}.schema.json`)
  if (!compiled) throw new Error(`there is no schema for ${kind} files`)
  if (cache !== noCache) {
    const { default: codeOf } = require('ajv/dist/standalone') as typeof import('ajv/dist/standalone/index.js')
    cache.write(aboutOf(kind), codeOf(ajv, compiled))
  }
  return compiled
}

function compiler(): Ajv2020 {
  const { Ajv2020 } = require('ajv/dist/2020.js') as typeof import('ajv/dist/2020.js')
  // The schemas are our own, and a test holds them against the meta-schema: no need to do so at every start.
  const checks = { allErrors: true, verbose: true, allowUnionTypes: true, meta: false, validateSchema: false }
  const made = new Ajv2020({ ...checks, code: { source: true } })
  made.addVocabulary(['patternErrorMessage', 'x-restart', 'x-secret'])
  for (const name of ['catalog', 'provider', 'dialect', 'config'] as const) made.addSchema(readSchema(name))
  return made
}

function aboutOf(kind: FileKind): string[] {
  return ['validator', kind]
}
