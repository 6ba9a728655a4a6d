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
  markdown: {
    // Braces at the end of a heading, as of a path with parameters, are text.
    attrs: { disable: true },
    // The same anchors as in the repository.
    anchor: { slugify: (heading) => heading.trim().toLowerCase().replace(/[^\p{L}\p{N}\p{M}_\- ]/gu, '').replaceAll(' ', '-') },
    config: (md) => {
      // Double braces in running text are text: the generator would evaluate them.
      const { text } = md.renderer.rules
      md.renderer.rules.text = (...args) => text(...args).replaceAll('{{', '&#123;&#123;')
      // Tables without a header have cells there that are no headers of anything.
      for (const name of ['th_open', 'th_close'])
        md.renderer.rules[name] = (tokens, index, options, _, self) => {
          const inside = tokens[name === 'th_open' ? index + 1 : index - 1]
          if (inside?.content === '') tokens[index].tag = 'td'
          return self.renderToken(tokens, index, options)
        }
    },
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
