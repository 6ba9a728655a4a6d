/** A section of the documentation: its pages in order, then all other pages of its folder by name. */
export type Section = { title: string; folder?: string; pages: readonly string[] }

/**
 * The table of contents. Pages are written as paths of the site without `.md`. A page of `docs/` that is in no section is an error, so
 * that a new page cannot be forgotten; pages that are listed here and do not exist are skipped.
 */
export const contents: readonly Section[] = [
  {
    title: 'Start',
    folder: 'start',
    pages: ['start/index', 'start/demo', 'start/first-provider', 'start/client', 'install'],
  },
  { title: 'Clients', folder: 'clients', pages: ['clients/index'] },
  { title: 'Deploy', folder: 'deploy', pages: ['deploy/index'] },
  { title: 'Tasks', folder: 'tasks', pages: ['tasks/index'] },
  { title: 'Concepts', folder: 'concepts', pages: ['concepts/index', 'architecture'] },
  {
    title: 'Extend',
    folder: 'extend',
    pages: ['add-a-provider', 'manifest', 'mapping', 'plugins', 'shipped-plugins', 'cookbook', 'examples'],
  },
  {
    title: 'Reference',
    folder: 'reference',
    pages: [
      'api',
      'api-reference',
      'errors',
      'routing',
      'operations',
      'observability',
      'console',
      'providers',
      'glossary',
      'changelog',
    ],
  },
  { title: 'Help', folder: 'help', pages: ['help/index', 'migrate', 'security'] },
  {
    title: 'Project',
    folder: 'decisions',
    pages: ['contributing', 'dependencies', 'performance', 'wall', 'guard-coverage', 'decisions/index'],
  },
]

/** Pages outside `docs/` that the site has, by their path in the repository. */
export const outside: Readonly<Record<string, string>> = {
  'README.md': 'index.md',
  'CHANGELOG.md': 'changelog.md',
  'CONTRIBUTING.md': 'contributing.md',
  'SECURITY.md': 'security.md',
  'examples/README.md': 'examples.md',
}
