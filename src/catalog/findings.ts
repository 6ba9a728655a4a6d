import type { ModelEntry } from './model.ts'

/** Something that is wrong with a list of models although its form is right; `path` leads to it from the list. */
export type Finding = { path: (string | number)[]; message: string }

/** What the form cannot say: every model does something, tiers ascend from 0, a name belongs to one model only. */
export function findingsIn(models: { readonly [model: string]: Partial<ModelEntry> }): Finding[] {
  const findings = Object.entries(models).flatMap(([model, entry]) => [
    ...(entry.api === undefined ? [{ path: [model], message: `\`${model}\` needs \`api\`, such as chat` }] : []),
    ...tierFindings(model, entry.pricing ?? []),
  ])
  return [...findings, ...aliasFindings(models)]
}

function tierFindings(model: string, tiers: NonNullable<ModelEntry['pricing']>): Finding[] {
  return tiers.flatMap(({ prompt_tokens_threshold: threshold }, index) => {
    const path = [model, 'pricing', index, 'prompt_tokens_threshold']
    const before = tiers[index - 1]?.prompt_tokens_threshold
    if (before === undefined) {
      return threshold === 0 ? [] : [{ path, message: `the first tier must have threshold 0, not ${threshold}` }]
    }
    if (threshold > before) return []
    return [{ path, message: `tiers must ascend: the threshold ${threshold} follows ${before}` }]
  })
}

function aliasFindings(models: { readonly [model: string]: Partial<ModelEntry> }): Finding[] {
  const owners = new Map<string, string>()
  return Object.entries(models).flatMap(([model, { aliases = [] }]) =>
    aliases.flatMap((alias, index) => {
      const owner = Object.hasOwn(models, alias) ? alias : owners.get(alias)
      if (owner === undefined) owners.set(alias, model)
      if (owner === undefined) return []
      return [
        { path: [model, 'aliases', index], message: `the alias \`${alias}\` already names the model \`${owner}\`` },
      ]
    }),
  )
}
