import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api } from '../api.ts'
import { html } from '../html.ts'
import { useLoad } from '../load.ts'
import { to } from '../place.ts'
import { codeFor, keyVariable } from '../playground/code.ts'
import { Select } from './form.ts'
import { Section } from './page.ts'
import { Badge, Code } from './text.ts'

type Provider = { slug: string; name: string; configured: boolean; missing: string[]; operations: string[] }
type Usage = { usage: Record<string, { grouped_data?: { group_by_values: Record<string, string | null> }[] }> }

/** Providers that most people begin with; all others are on their page. */
const usual = ['openai', 'anthropic', 'google', 'mistral', 'openrouter', 'groq', 'deepseek', 'xai']
const simulated = 'demo'
const dayMs = 86_400_000
const days = 90

/** Checks whether calls were served by anything but the simulator. */
export function hasRealCalls({ usage }: Usage): boolean {
  return Object.values(usage).some(({ grouped_data: groups = [] }) =>
    groups.some(({ group_by_values: { provider } }) => provider !== null && provider !== simulated),
  )
}

/**
 * Leads to the first call of a real provider, where there was none in the last 90 days: which variable to set, what to do then, and how to
 * point a client at the router.
 */
export function FirstProvider() {
  const found = useLoad(async (signal) => {
    const start = new Date(Date.now() - days * dayMs).toISOString().slice(0, 10)
    const query = { start, resolution: 'month', group_by: 'provider' }
    if (hasRealCalls(await api<Usage>('v1/manage/org/usage', { query, signal }))) return undefined
    return (await api<{ providers: Provider[] }>('v1/manage/providers', { signal })).providers
  })
  useEffect(() => {
    // A provider may be configured, and called, meanwhile.
    const timer = setInterval(() => document.hidden || found.reload(), 5_000)
    return () => clearInterval(timer)
  }, [])
  return found.data ? html`<${Steps} providers=${found.data} />` : null
}

function Steps({ providers }: { providers: readonly Provider[] }) {
  const chosen = useSignal('')
  const offered = usual.flatMap((slug) => providers.find((one) => one.slug === slug) ?? [])
  const ready = offered.find(({ configured }) => configured)
  const provider = offered.find(({ slug }) => slug === chosen.value) ?? ready ?? offered[0]
  const models = useLoad(
    async (signal) => {
      const { data } = await api<{ data: { id: string; api: string }[] }>('v1/models/all', { signal })
      return data.filter((model) => model.api === 'chat').map(({ id }) => id)
    },
    [provider?.configured],
  )
  if (!provider) return null
  const { slug, name, configured, missing } = provider
  const model = models.data?.find((id) => id.startsWith(`${slug}/`)) ?? `${slug}/<model>`
  const base = new URL('..', location.href.replace(/#.*$/s, '')).href.replace(/\/$/, '')
  const body = { model, messages: [{ role: 'user', content: 'Hello' }] }
  const done = html`<${Badge} kind="good">done<//>`
  return html`<${Section} title="Call your first real provider" actions=${html`<a href=${to('providers')}>All ${providers.length} providers</a>`}>
    <p class="quiet">No real provider has been called yet. Three steps lead to one.</p>
    <ol class="steps">
      <li>
        <h3>Set the key of a provider ${configured && done}</h3>
        <div class="filters"><${Select} name="provider" label="Provider" value=${slug} options=${offered.map((one) => [one.slug, one.configured ? `${one.name} (configured)` : one.name])} onInput=${(value: string) => (chosen.value = value)} /></div>
        ${
          configured
            ? html`<p>${name} is configured.</p>`
            : html`<p>Put this line into the file <code>.env</code> beside <code>config.yaml</code>, or set the variable in the environment of the router:</p><${Code} text=${missing.map((variable) => `${variable}=…`).join('\n')} />`
        }
      </li>
      <li>
        <h3>Restart the router ${configured && done}</h3>
        <p>Variables are read at the start. This page notices by itself when ${name} is configured; <a href=${to(`providers/${slug}`)}>its page</a> says what is missing. <code>npm run inference-router -- doctor --call ${slug}</code> calls it once.</p>
      </li>
      <li>
        <h3>Point a client at the router</h3>
        <p><a href=${to('keys')}>Create a key</a> for it, set it as <code>${keyVariable}</code>, and use the base URL <code>${base}/v1</code> in any SDK of OpenAI, or <code>${base}</code> in one of Anthropic:</p>
        <${Code} text=${codeFor('curl', 'chat', body, base)} />
        <p>Or try it in the <a href=${to('playground', { model: configured ? model : undefined })}>playground</a>.</p>
      </li>
    </ol>
  <//>`
}
