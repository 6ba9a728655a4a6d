import { defineConfig } from 'vitepress'
// Written by tools/site/main.ts from the pages and their order in tools/site/contents.ts.
import site from './site.json' with { type: 'json' }

export default defineConfig({
  title: 'inference-router',
  description: site.description,
  lang: 'en',
  base: process.env.DOCS_BASE ?? '/',
  srcDir: 'pages',
  outDir: '../docs',
  cacheDir: 'cache',
  // Examples have double braces of their own, so those of templates are never used.
  vue: { template: { compilerOptions: { delimiters: ['⟦⟦', '⟧⟧'] } } },
  markdown: {
    // The same anchors as in the repository.
    anchor: { slugify: (heading) => heading.trim().toLowerCase().replace(/[^\p{L}\p{N}\p{M}_\- ]/gu, '').replaceAll(' ', '-') },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  // Otherwise opening a page would load all pages that it links to.
  router: { prefetchLinks: false },
  themeConfig: {
    nav: site.nav,
    sidebar: site.sidebar,
    outline: [2, 3],
    search: { provider: 'local' },
    externalLinkIcon: true,
  },
})
