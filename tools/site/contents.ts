/** A section of the documentation: its pages in order, then all other pages of its folder by name. */
export type Section = { title: string; folder?: string; pages: readonly string[] }

/** The generated pages of the API reference, in order. */
const reference = [
  'index',
  'calls',
  'responses',
  'models',
  'keys',
  'organization',
  'ledger',
  'groups',
  'names',
  'instance',
  'process',
  'schemas',
].map((name) => `reference/${name}`)

/**
 * The table of contents. Pages are written as paths of the site without `.md`. A page of `docs/` that is in no section is an error, so
 * that a new page cannot be forgotten; pages that are listed here and do not exist are skipped.
 */
export const contents: readonly Section[] = [
  {
    title: 'Start',
    folder: 'start',
    pages: ['start/demo', 'start/first-provider', 'start/point-a-client', 'install'],
  },
  {
    title: 'Clients',
    folder: 'clients',
    pages: ['clients/curl', 'clients/openai-sdk', 'clients/anthropic-sdk', 'clients/claude-code', 'clients/codex'],
  },
  {
    title: 'Deploy',
    folder: 'deploy',
    pages: ['deploy/image', 'deploy/compose', 'deploy/systemd', 'deploy/kubernetes', 'versioning'],
  },
  {
    title: 'Tasks',
    folder: 'tasks',
    pages: ['tasks/keys-with-budgets', 'tasks/fallback', 'tasks/cheapest-or-fastest'],
  },
  {
    title: 'Concepts',
    folder: 'concepts',
    pages: ['concepts/how-a-call-runs', 'concepts/routing', 'concepts/money', 'architecture'],
  },
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
      ...reference,
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
  {
    title: 'Help',
    folder: 'help',
    pages: ['help/troubleshooting', 'help/faq', 'migrate', 'help/comparison', 'security'],
  },
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
