import type { Problem } from '../manifest/check/problem.ts'
import type { Layer } from '../manifest/read/layer.ts'
import type { Mapping } from '../mapping/mapping.ts'
import { relativePath } from './output.ts'

/** A mapping and its position. `name` is its path in the file. */
export type PlacedMapping = { file: string; line: number; column: number; name: string; mapping: Mapping }

/** The mappings of these files, including those of variants, each once and in the order of the files. */
export function mappingsIn(layers: readonly Layer[]): PlacedMapping[] {
  const found = new Map<Mapping, PlacedMapping>()
  for (const { source, places, variants } of layers) {
    for (const [mapping, path] of places) {
      found.set(mapping, { file: source.file, ...source.at(path), name: path.join('.'), mapping })
    }
    // The layers of a variant are in other files, or in this one.
    for (const placed of mappingsIn(variants.flatMap((variant) => variant.layers.slice(-1)))) {
      found.set(placed.mapping, placed)
    }
  }
  return [...found.values()]
}

/** Whether a mapping was compiled to JavaScript and, when not, the construct that prevented it. */
export function treatmentOf({ compiled, fallback }: Mapping): { compiled: boolean; construct?: string } {
  return { compiled, ...(fallback !== undefined && { construct: fallback }) }
}

/**
 * Prints the JavaScript that a mapping is compiled to, or why there is none, below its place and URL. With these lines in front, line
 * numbers are those of stack traces.
 */
export function printedMapping({ file, line, column, name, mapping }: PlacedMapping): string {
  const place = `// ${relativePath(file)}:${line}:${column}: ${name}`
  if (!mapping.compiled) return `${place}\n${mapping.explain()}\n`
  return `${place}\n// ${mapping.url}\n"use strict"\n${mapping.explain()}\n`
}

/** A warning for each mapping that is not compiled. */
export function interpretedWarnings(placed: readonly PlacedMapping[]): Problem[] {
  return placed
    .filter(({ mapping }) => !mapping.compiled)
    .map(({ file, line, column, name, mapping }) => {
      const message = `the mapping \`${name}\` is interpreted, which is about a hundred times slower: ${mapping.fallback} is not compiled`
      return { file, line, column, message, severity: 'warning' }
    })
}
