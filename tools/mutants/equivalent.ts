/** A mutant that no test can notice, and why; the file and the lines are as the report prints them. */
export type Equivalent = { file: string; before: string; after: string; reason: string }

export const equivalent: readonly Equivalent[] = [
  {
    file: 'src/money/rates.ts',
    before: "const key = modes.length === 0 ? String(reached) : `${reached} ${modes.join(' ')}`",
    after: "const key = (`${reached} ${modes.join(' ')}`)",
    reason: 'The key of a memo; it tells tiers and modes apart in either form.',
  },
]
