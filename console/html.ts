import htm from 'htm'
import { h, type VNode } from 'preact'

/** Markup of components: a tagged template, which needs no compiler. All values are shown as text. */
export const html = htm.bind(h) as unknown as (strings: TemplateStringsArray, ...values: unknown[]) => VNode
