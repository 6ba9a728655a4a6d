/** The instruction that asks for JSON where a provider has no field for it. */
export function jsonInstruction(schema?: unknown): string {
  const instruction = 'Answer with one JSON value and nothing else: no explanation, no code fences.'
  if (schema === undefined) return instruction
  return `${instruction}\nIt must be valid against this JSON schema:\n${JSON.stringify(schema)}`
}

/** The instruction that asks for a tool call, of one tool or of any, where a provider cannot demand it. */
export function callInstruction(name?: string): string {
  return `Answer with a call of ${name === undefined ? 'one of the tools' : `the tool ${name}`}.`
}
