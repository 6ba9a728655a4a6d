import type { FunctionComponent } from 'preact'
import type { PageProps } from './place.ts'

/** A page: `path` is the part of the address behind `#/`. */
export type Route = {
  path: string
  title: string
  load(): Promise<{ default: FunctionComponent<PageProps> }>
}

/** The pages in the order of the navigation. */
export const routes: readonly Route[] = [
  { path: 'overview', title: 'Overview', load: () => import('./pages/overview.ts') },
  { path: 'health', title: 'Health', load: () => import('./pages/health.ts') },
  { path: 'calls', title: 'Calls', load: () => import('./pages/calls.ts') },
  { path: 'keys', title: 'Keys', load: () => import('./pages/keys.ts') },
  { path: 'groups', title: 'Groups', load: () => import('./pages/groups.ts') },
  { path: 'models', title: 'Models', load: () => import('./pages/models.ts') },
  { path: 'providers', title: 'Providers', load: () => import('./pages/providers.ts') },
  { path: 'names', title: 'Aliases & policies', load: () => import('./pages/names.ts') },
  { path: 'plugins', title: 'Plugins', load: () => import('./pages/plugins.ts') },
  { path: 'organization', title: 'Organization', load: () => import('./pages/organization.ts') },
  { path: 'settings', title: 'Settings', load: () => import('./pages/settings.ts') },
  { path: 'changes', title: 'Audit log', load: () => import('./pages/changes.ts') },
  { path: 'playground', title: 'Playground', load: () => import('./pages/playground.ts') },
]
