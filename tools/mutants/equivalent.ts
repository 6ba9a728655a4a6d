/** A mutant that no test can notice, and why; the file and the lines are as the report prints them. */
export type Equivalent = { file: string; before: string; after: string; reason: string }

export const equivalent: readonly Equivalent[] = []
