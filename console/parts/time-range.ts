import { html } from '../html.ts'
import { changeQuery } from '../place.ts'
import { Field, Select } from './form.ts'

/** The choice that is from one time to another, which stand in the address as `from` and `to`, where the reader is. */
export const chosenTimes = 'chosen'

export type TimeRangeProps = {
  /** The parameter of the address. */
  name: string
  value: string
  options: readonly (readonly [string, string])[]
  query: URLSearchParams
}

/** Chooses of which time something is shown. */
export function TimeRange({ name, value, options, query }: TimeRangeProps) {
  const all = [...options, [chosenTimes, 'From … to …']]
  return html`
    <${Select} name=${name} label="Time" value=${value} options=${all} onInput=${(chosen: string) => changeQuery({ [name]: chosen })} />
    ${
      value === chosenTimes &&
      ['from', 'to'].map(
        (end) =>
          html`<${Field} key=${end} name=${end} label=${end === 'from' ? 'From' : 'To'} type="datetime-local" value=${query.get(end) ?? ''} onInput=${(at: string) => changeQuery({ [end]: at })} />`,
      )
    }
  `
}

/** Returns the times that were chosen, as the API takes them; undefined where none was. */
export function chosenSpan(query: URLSearchParams): { start: string | undefined; end: string | undefined } {
  return { start: timeIn(query.get('from')), end: timeIn(query.get('to')) }
}

function timeIn(text: string | null): string | undefined {
  const at = new Date(text || Number.NaN)
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString()
}
