import { computed, signal } from '@preact/signals'
import { decoded } from './format.ts'

export type Level = 'none' | 'read' | 'write'
export type Permissions = { completions: Level; manage: Level; operate: Level; instance?: 'read'; content?: Level }
export type Self = { key_id: string; permissions: Permissions }

/** Name under which the key is kept while the tab is open, never longer. */
const kept = 'inference-router key'

/** The key of whoever has signed in; empty for nobody. */
export const key = signal(sessionStorage.getItem(kept) ?? '')
/** Permissions of the key, once they are known. */
export const self = signal<Self | undefined>(undefined)
export const organization = signal('')
/** Reason why nobody is signed in any more. */
export const signedOutBecause = signal('')

export const isSignedIn = computed(() => key.value !== '' && self.value !== undefined)

/** Returns why a change, or a reading, is not possible with this key; undefined where it is. */
export function whyNot(area: keyof Permissions, needed: 'read' | 'write' = 'write'): string | undefined {
  const level = self.value?.permissions[area] ?? 'none'
  if (level === 'write' || level === needed) return undefined
  return `This key has ${area}: ${level}. A key with ${area}: ${needed} is needed.`
}

/** Begins the session of a key, which is kept for as long as the tab is open. */
export function begin(secret: string, found: Self, name: string): void {
  sessionStorage.setItem(kept, secret)
  signedOutBecause.value = ''
  organization.value = name
  key.value = secret
  self.value = found
}

export function signOut(because = ''): void {
  sessionStorage.removeItem(kept)
  signedOutBecause.value = because
  key.value = ''
  self.value = undefined
}

/** Returns the key that a link carries behind its #, where no server sees it. It does not stay in the address. */
export function keyInAddress(): string | undefined {
  const found = /^#key=(.+)$/.exec(location.hash)?.[1]
  if (found === undefined) return undefined
  history.replaceState(null, '', `${location.pathname}${location.search}#/`)
  return decoded(found)
}
