import type { ImportPlan } from './plan.ts'

/**
 * Returns the reference to a variable for a credential in a foreign file: the variable that it names, or a new one for a credential that stands
 * there itself. `variable` reads the gateway's way to name a variable.
 */
export function secretReference(
  plan: ImportPlan,
  written: string,
  { variable, hint }: { variable: RegExp; hint: string },
): string {
  const [, named] = variable.exec(written) ?? []
  if (named !== undefined) return `\${${named}}`
  const base = `${plan.from}_${hint}_API_KEY`.toUpperCase().replace(/[^A-Z0-9]+/g, '_')
  for (let count = 1; ; count++) {
    const name = count === 1 ? base : `${base}_${count}`
    const taken = plan.variables[name]
    if (taken !== undefined && taken !== written) continue
    plan.variables[name] = written
    return `\${${name}}`
  }
}
