import { useSignal } from '@preact/signals'
import { all, api } from '../api.ts'
import { count } from '../format.ts'
import { html } from '../html.ts'
import { callableNames, linesOf } from '../lists.ts'
import { useLoad } from '../load.ts'
import { Confirm, Dialog } from '../parts/dialog.ts'
import { Button, Field, Form, Select, TextArea, type Values } from '../parts/form.ts'
import { Loading, Page, Section } from '../parts/page.ts'
import { PolicyDrawing, type Target } from '../parts/policy-drawing.ts'
import { Table } from '../parts/table.ts'
import { Badge, Code, Money, Name } from '../parts/text.ts'
import { toast } from '../parts/toast.ts'
import { to } from '../place.ts'
import { whyNot } from '../session.ts'

type Alias = { name: string; target: string }
/** A policy; those of the configuration have no targets for keys that may not see them. */
type Policy = { id: string; description: string; targets?: Target[] } & Partial<
  Record<(typeof rules)[number]['name'], string | number>
>
type Doing =
  | { what: 'alias'; alias?: Alias }
  | { what: 'policy'; policy?: Policy }
  | { what: 'try'; policy: Policy }
  | { what: 'delete'; path: string; name: string }

/** The rules of a policy: what its targets are asked by. */
const rules = [
  {
    name: 'sort',
    label: 'Order of targets',
    options: ['order', 'weighted', 'price', 'latency', 'throughput'],
    hint: 'order: as listed; price: the cheapest first',
  },
  {
    name: 'sticky',
    label: 'Sticky routing',
    options: ['none', 'session', 'user', 'hash', 'cache'],
    hint: 'cache: while the provider has the prompt in its cache',
  },
  { name: 'retries', label: 'Retries on the same target', hint: '0 or more' },
  {
    name: 'first_event',
    label: 'Max wait for the first token',
    hint: 'such as 10s; then the next target is tried',
  },
  { name: 'total', label: 'Max duration of the call', hint: 'such as 5m' },
  { name: 'retry_after', label: 'Max wait for a busy target', hint: 'such as 5s' },
  {
    name: 'on_cut',
    label: 'When a stream is interrupted',
    options: ['error', 'hold', 'continue', 'restart'],
    hint: 'continue: another target continues',
  },
  {
    name: 'on_blocked',
    label: 'When a content filter refuses',
    options: ['error', 'next'],
    hint: 'next: another target is tried',
  },
] as const

/** Aliases, which stand for one model, and policies, which stand for several. */
export default function Names() {
  const names = useLoad(async (signal) => {
    const [aliases, policies, managed] = await Promise.all([
      all<Alias>('v1/manage/alias', 'aliases', signal),
      all<Policy>('v1/manage/policy', 'policies', signal),
      api<{ policies: Policy[] }>('v1/manage/managed-policy', { signal }),
    ])
    const own = new Set(policies.map(({ id }) => id))
    return { aliases, policies, managed: managed.policies.filter(({ id }) => !own.has(id)) }
  })
  const doing = useSignal<Doing | undefined>(undefined)
  const why = whyNot('manage')
  const begin = (next: Doing) => () => (doing.value = next)
  const close = () => (doing.value = undefined)
  const done = (text: string) => {
    close()
    toast(text)
    names.reload()
  }
  const button = (text: string, next: Doing, reason = why) =>
    html`<${Button} kind="small" whyNot=${reason} onClick=${begin(next)}>${text}<//>`
  return html`
    <${Page} title="Aliases & policies">
      <${Loading} of=${names}>${({ aliases, policies, managed }: NonNullable<typeof names.data>) => html`
        <${Section} title="Policies" actions=${html`<${Button} kind="primary" whyNot=${why} onClick=${begin({ what: 'policy' })}>Create policy<//>`}>
          <p class="quiet">A name for several models, with rules for which of them serves a call and what happens when it fails.</p>
          <${PolicyTable} label="Policies" policies=${policies} actions=${(policy: Policy) => html`${button('Dry run', { what: 'try', policy }, undefined)}${button('Change', { what: 'policy', policy })}${button('Delete', { what: 'delete', path: `policy/${encodeURIComponent(policy.id)}`, name: policy.id })}`} />
        <//>
        ${
          managed.length > 0 &&
          html`<${Section} title="Policies of the configuration">
          <p class="quiet">They are part of the server's configuration and can be changed only there.</p>
          <${PolicyTable} label="Policies of the configuration" policies=${managed} actions=${(policy: Policy) => button('Dry run', { what: 'try', policy }, undefined)} />
        <//>`
        }
        <${Section} title="Aliases" actions=${html`<${Button} kind="primary" whyNot=${why} onClick=${begin({ what: 'alias' })}>Create alias<//>`}>
          <p class="quiet">Another name for one model.</p>
          <${Table} label="Aliases" rows=${aliases} keyOf=${({ name }: Alias) => name} columns=${[
            {
              head: 'Name',
              cell: ({ name }: Alias) =>
                html`<a href=${to('calls', { asked: name })} title="View calls"><${Name} text=${name} /></a>`,
            },
            { head: 'Target', cell: ({ target }: Alias) => html`<${Name} text=${target} mono />` },
            {
              head: '',
              cell: (alias: Alias) =>
                html`<span class="actions">${button('Change', { what: 'alias', alias })}${button('Delete', { what: 'delete', path: `alias/${alias.name.split('/').map(encodeURIComponent).join('/')}`, name: alias.name })}</span>`,
            },
          ]} />
        <//>
        ${doing.value && html`<${Do} doing=${doing.value} onClose=${close} onDone=${done} />`}
      `}<//>
    <//>
  `
}

function PolicyTable({
  label,
  policies,
  actions,
}: {
  label: string
  policies: readonly Policy[]
  actions(policy: Policy): unknown
}) {
  return html`<${Table} label=${label} rows=${policies} keyOf=${({ id }: Policy) => id} columns=${[
    {
      head: 'Name',
      cell: ({ id, description }: Policy) =>
        html`<a href=${to('calls', { asked: id })} title="View calls"><${Name} text=${id} /></a>${description && html`<br /><span class="quiet"><${Name} text=${description} /></span>`}`,
    },
    {
      head: 'Targets',
      cell: ({ targets, sort }: Policy) =>
        targets ? html`<${PolicyDrawing} targets=${targets} sort=${sort} />` : html`<span class="quiet">–</span>`,
    },
    {
      head: 'Rules',
      isMinor: true,
      cell: (policy: Policy) =>
        rules
          .filter(({ name }) => name !== 'sort' && policy[name] !== undefined)
          .map(({ name, label }) => html`<div key=${name}><span class="quiet">${label}:</span> ${policy[name]}</div>`),
    },
    { head: '', cell: (policy: Policy) => html`<span class="actions">${actions(policy)}</span>` },
  ]} />`
}

function targetText(target: Target): string {
  if (typeof target === 'string') return target
  return target.weight === undefined ? target.target : `${target.target} weight ${target.weight}`
}

function Do({ doing, onClose, onDone }: { doing: Doing; onClose(): void; onDone(text: string): void }) {
  if (doing.what === 'alias') return html`<${AliasForm} alias=${doing.alias} onClose=${onClose} onDone=${onDone} />`
  if (doing.what === 'policy') return html`<${PolicyForm} policy=${doing.policy} onClose=${onClose} onDone=${onDone} />`
  if (doing.what === 'try') return html`<${DryRun} policy=${doing.policy} onClose=${onClose} />`
  const remove = async () => {
    await api(`v1/manage/${doing.path}`, { method: 'DELETE' })
    onDone('Deleted.')
  }
  return html`<${Confirm} title=${doing.path.startsWith('alias/') ? 'Delete the alias' : 'Delete the policy'} submit="Delete" onConfirm=${remove} onClose=${onClose}><p>Calls to <strong><${Name} text=${doing.name} /></strong> fail from now on.</p><//>`
}

function AliasForm({
  alias,
  onClose,
  onDone,
}: {
  alias: Alias | undefined
  onClose(): void
  onDone(text: string): void
}) {
  const names = useLoad(callableNames)
  const save = async (values: Values) => {
    await api('v1/manage/alias', { method: 'POST', body: { name: values.get('name'), target: values.get('target') } })
    onDone('Saved.')
  }
  return html`<${Dialog} title=${alias ? 'Change the alias' : 'Create an alias'} onClose=${onClose}><${Form} submit="Save" onCancel=${onClose} onSubmit=${save}>
    <${Field} name="name" label="Name" required value=${alias?.name} hint=${alias && 'A different name creates another alias.'} />
    <${Field} name="target" label="Model" required value=${alias?.target} options=${names.data ?? []} />
  <//><//>`
}

function PolicyForm({
  policy,
  onClose,
  onDone,
}: {
  policy: Policy | undefined
  onClose(): void
  onDone(text: string): void
}) {
  const names = useLoad(callableNames)
  const targets = useSignal((policy?.targets ?? []).map(targetText).join('\n'))
  const add = (name: string) => {
    if (names.data?.includes(name)) targets.value = [...linesOf(targets.value), name].join('\n')
  }
  const save = async (values: Values) => {
    const chosen = Object.fromEntries(
      rules
        .filter(({ name }) => values.get(name) !== '')
        .map(({ name }) => [name, name === 'retries' ? Number(values.get(name)) : values.get(name)]),
    )
    const body = {
      description: values.get('description'),
      targets: linesOf(values.get('targets')).map(targetIn),
      ...chosen,
    }
    if (policy) await api(`v1/manage/policy/${encodeURIComponent(policy.id)}`, { method: 'PUT', body })
    else await api('v1/manage/policy', { method: 'POST', body: { id: values.get('id'), ...body } })
    onDone('Saved.')
  }
  return html`<${Dialog} title=${policy ? `Change ${policy.id.slice(0, 60)}` : 'Create a policy'} onClose=${onClose}><${Form} submit="Save" onCancel=${onClose} onSubmit=${save}>
    ${!policy && html`<${Field} name="id" label="Name" required />`}
    <${Field} name="description" label="Description" value=${policy?.description} />
    <${Field} name="add" label="Add a model" options=${names.data ?? []} onInput=${add} />
    <${TextArea} name="targets" label="Targets" rows=${5} value=${targets.value} onInput=${(typed: string) => (targets.value = typed)} hint="One ID per line, in the order in which they are tried; for sort: weighted, 'openai/gpt-5 weight 2'." />
    <details><summary>Rules</summary><div class="form">
      ${rules.map((rule) =>
        'options' in rule
          ? html`<${Select} key=${rule.name} name=${rule.name} label=${rule.label} hint=${rule.hint} value=${String(policy?.[rule.name] ?? '')} options=${[['', 'As configured'], ...rule.options.map((value) => [value, value] as const)]} />`
          : html`<${Field} key=${rule.name} name=${rule.name} label=${rule.label} hint=${`${rule.hint}; empty: as configured`} value=${policy?.[rule.name]} />`,
      )}
    </div></details>
  <//><//>`
}

function targetIn(line: string): Target {
  const [, target, weight] = /^(.+?)\s+weight\s+([\d.]+)$/.exec(line) ?? []
  return target === undefined ? line : { target, weight: Number(weight) }
}

type PlannedTarget = {
  model: string
  by?: string
  reason?: string
  weight?: number
  prompt_cost_usd?: number
  max_cost_usd?: number
}
type Explained = {
  sort: string
  sticky: string
  /** An estimate. */
  prompt_tokens?: number
  targets: PlannedTarget[]
  skipped: ({ model: string; reason?: string; step?: string } & Record<string, unknown>)[]
  error?: { code: string; message: string }
}

const plannedColumns = [
  { head: 'Target', cell: ({ model }: PlannedTarget) => html`<${Name} text=${model} />` },
  {
    head: 'Cost',
    cell: ({ prompt_cost_usd: prompt, max_cost_usd: most }: PlannedTarget) =>
      most === undefined
        ? html`<span class="quiet">no price</span>`
        : html`at most <${Money} value=${most} /><br /><span class="quiet">prompt ≈ <${Money} value=${prompt} /></span>`,
  },
  {
    head: 'Why',
    cell: ({ by, reason, weight }: PlannedTarget) =>
      html`${by && html`<${Badge}>${by}${weight !== undefined && ` ${weight}`}<//> `}<${Name} text=${reason} lines=${3} />`,
  },
]

const example = JSON.stringify({ messages: [{ role: 'user', content: 'Hello' }] }, null, 2)

/** Shows where a request would go, and why; nothing is sent. */
function DryRun({ policy, onClose }: { policy: Policy; onClose(): void }) {
  const found = useSignal<Explained | undefined>(undefined)
  const run = async (values: Values) => {
    found.value = undefined
    const body = { ...(JSON.parse(values.get('request')) as object), api: values.get('api') }
    found.value = await api<Explained>(`v1/manage/policy/${encodeURIComponent(policy.id)}/explain`, {
      method: 'POST',
      body,
    })
  }
  const { value } = found
  return html`<${Dialog} title="Dry run" onClose=${onClose}>
    <p class="quiet">Where would this request go, and why? Nothing is sent.</p>
    <${Form} submit="Run" onSubmit=${run}>
      <${Select} name="api" label="API" options=${[['chat', 'Chat Completions'], ['messages', 'Messages'], ['responses', 'Responses']]} />
      <${TextArea} name="request" label="Request" rows=${8} mono value=${example} />
    <//>
    ${
      value &&
      html`<div aria-live="polite">
      <${Section} title="It would go to">
        <${Table} label="Targets in order" rows=${value.targets} keyOf=${({ model }: PlannedTarget) => model} empty="No target can serve it." columns=${plannedColumns} />
        ${value.prompt_tokens !== undefined && html`<p class="hint">The prompt has about ${count(value.prompt_tokens)} tokens. “At most” assumes the longest answer that the request allows.</p>`}
      <//>
      ${
        value.skipped.length > 0 &&
        html`<${Section} title="Skipped">
        <${Table} label="Skipped targets" rows=${value.skipped} keyOf=${({ model }: Explained['skipped'][number]) => model} columns=${[
          { head: 'Target', cell: ({ model }: Explained['skipped'][number]) => html`<${Name} text=${model} />` },
          {
            head: 'Why',
            cell: ({ step, reason }: Explained['skipped'][number]) =>
              html`${step && html`<${Badge} kind="warn">${step}<//> `}<${Name} text=${reason} lines=${3} />`,
          },
        ]} />
      <//>`
      }
      <details><summary>Raw</summary><${Code} text=${JSON.stringify(value, null, 2)} /></details>
    </div>`
    }
  <//>`
}
