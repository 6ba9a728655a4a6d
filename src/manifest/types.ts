import type { Mapping } from '../mapping/mapping.ts'
import type { Path } from './read/position.ts'

/** A neutral field that never reaches the mapping, or an edited body: always, or when the mapping over the request is true. */
export type UnsupportedField = { field: string; path: Path; when?: Mapping }

/** Values for `when` of a variant: neutral fields of requests, and tools that only one client API defines. */
export const variantNeeds = [
  'web_search',
  'provider_tools',
  'parts.image',
  'parts.audio',
  'parts.file',
  'parts.file_id',
  'parts.video',
  'tools',
  'functions_with_effort',
  'functions_unless_effort_none',
  'response_format',
  'reasoning',
] as const

export type VariantNeed = (typeof variantNeeds)[number]

/** A regular expression of a file, whose running time is bounded for the texts that it is tried on. */
export type Pattern = { test(text: string): boolean }
