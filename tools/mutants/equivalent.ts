import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { Mutant } from './mutants.ts'

/** A mutant that no test can notice, as the report prints it, and why. */
type Equivalent = Pick<Mutant, 'file' | 'before' | 'after'> & { reason: string }

/** The mutants that `equivalent.yaml` lists. */
export const equivalent: readonly Equivalent[] = parse(
  readFileSync(join(import.meta.dirname, 'equivalent.yaml'), 'utf8'),
)

/** Checks whether `equivalent.yaml` lists a mutant. */
export function isEquivalent({ file, before, after }: Mutant): boolean {
  return equivalent.some((one) => one.file === file && one.before === before && one.after === after)
}
