import { useSignal } from '@preact/signals'
import { all, api } from '../api.ts'
import { paces } from '../budgets.ts'
import type { Group } from '../entries.ts'
import { usd } from '../format.ts'
import { html } from '../html.ts'
import { numberOr } from '../lists.ts'
import { useLoad } from '../load.ts'
import { BudgetBar } from '../parts/budget.ts'
import { Confirm, Dialog } from '../parts/dialog.ts'
import { Button, Field, Form, type Values } from '../parts/form.ts'
import { Loading, Page } from '../parts/page.ts'
import { Table } from '../parts/table.ts'
import { Id, Money, Name } from '../parts/text.ts'
import { toast } from '../parts/toast.ts'
import { to } from '../place.ts'
import { whyNot } from '../session.ts'

type Doing = { what: 'create' } | { what: 'limit' | 'keep' | 'revoke'; group: Group }

/** Groups of keys, which share a monthly limit. */
export default function Groups() {
  const groups = useLoad((signal) => all<Group>('v1/manage/group', 'groups', signal))
  // Nothing waits for it.
  const pace = useLoad((signal) => paces('group_id', signal)).data
  const doing = useSignal<Doing | undefined>(undefined)
  const why = whyNot('manage')
  const close = () => (doing.value = undefined)
  const done = (text: string) => {
    close()
    toast(text)
    groups.reload()
  }
  return html`
    <${Page} title="Groups" actions=${html`<${Button} kind="primary" whyNot=${why} onClick=${() => (doing.value = { what: 'create' })}>Create group<//>`}>
      <p class="quiet">The keys of a group share its monthly limit, in addition to their own.</p>
      <${Loading} of=${groups}>${(found: Group[]) =>
        html`<${Table} label="Groups" rows=${found} keyOf=${({ id }: Group) => id} columns=${[
          {
            head: 'Name',
            sortBy: ({ name }: Group) => name.toLowerCase(),
            cell: ({ id, name }: Group) =>
              html`<a href=${to('calls', { group: id })} title="View calls"><${Name} text=${name} /></a>`,
          },
          {
            head: 'This month',
            isNumber: true,
            sortBy: (group: Group) => group.monthly_spend,
            cell: (group: Group) =>
              html`<${Money} value=${group.monthly_spend} /><${BudgetBar} spent=${group.monthly_spend} limit=${group.monthly_limit} pace=${pace && (pace.get(group.id) ?? 0)} />`,
          },
          {
            head: 'Limit',
            isNumber: true,
            cell: (group: Group) =>
              group.monthly_limit === 0
                ? html`<span class="quiet">none</span>`
                : html`<${Money} value=${group.monthly_limit} />`,
          },
          { head: 'ID', isMinor: true, cell: ({ id }: Group) => html`<${Id} id=${id} />` },
          {
            head: '',
            cell: (group: Group) => html`<span class="actions">
          <${Button} kind="small" whyNot=${why} onClick=${() => (doing.value = { what: 'limit', group })}>Change limit<//>
          <${Button} kind="small" whyNot=${why} onClick=${() => (doing.value = { what: 'keep', group })}>Delete, keep keys<//>
          <${Button} kind="small" whyNot=${why} onClick=${() => (doing.value = { what: 'revoke', group })}>Delete with keys<//>
        </span>`,
          },
        ]} />`}<//>
      ${doing.value && html`<${Do} doing=${doing.value} onClose=${close} onDone=${done} />`}
    <//>
  `
}

function Do({ doing, onClose, onDone }: { doing: Doing; onClose(): void; onDone(text: string): void }) {
  if (doing.what === 'create') {
    const create = async (values: Values) => {
      await api('v1/manage/group', {
        method: 'POST',
        body: { name: values.get('name'), monthly_limit: numberOr(values.get('monthly_limit'), 'The limit', 0) },
      })
      onDone('Created.')
    }
    return html`<${Dialog} title="Create a group" onClose=${onClose}><${Form} submit="Create group" onCancel=${onClose} onSubmit=${create}>
      <${Field} name="name" label="Name" required />
      <${Field} name="monthly_limit" label="Monthly limit, USD" type="number" min=${0} step="any" hint="Empty: no limit." />
    <//><//>`
  }
  const { what, group } = doing
  const path = `v1/manage/group/${group.id}`
  if (what === 'limit') {
    const change = async (values: Values) => {
      await api(`${path}/limit`, {
        method: 'POST',
        body: { monthly_limit: numberOr(values.get('monthly_limit'), 'The limit', 0) },
      })
      onDone('Changed.')
    }
    return html`<${Dialog} title="Monthly limit" onClose=${onClose}><${Form} submit="Save" onCancel=${onClose} onSubmit=${change}>
      <${Field} name="monthly_limit" label="USD per month" type="number" min=${0} step="any" value=${group.monthly_limit || ''} hint="Empty: no limit." />
    <//><//>`
  }
  const remove = async () => {
    await api(path, { method: 'DELETE', query: { keys: what } })
    onDone('Deleted.')
  }
  return html`<${Confirm} title="Delete the group" submit="Delete" onConfirm=${remove} onClose=${onClose}>
    <p><strong><${Name} text=${group.name} /></strong> has spent ${usd(group.monthly_spend)} this month. ${what === 'keep' ? 'Its keys continue to work without the limit of the group.' : 'Its keys are revoked: calls with them are refused from now on.'} This cannot be undone.</p>
  <//>`
}
