import { expect, test } from 'vitest'
import { absoluteUrl } from '../../src/upstream/provider-request.ts'

const hosts = ['acme.com', '*.acme.com', 'jobs.shared.example']

test.each([
  ['https://api.acme.com/v1', 'https://api.acme.com/jobs/1?a=b#c', 'https://api.acme.com/jobs/1?a=b'],
  ['https://api.acme.com/v1', 'https://QUEUE.acme.com/jobs', 'https://queue.acme.com/jobs'],
  ['https://api.acme.com/v1', 'https://eu.queue.acme.com/jobs', 'https://eu.queue.acme.com/jobs'],
  ['https://api.acme.com/v1', 'https://acme.com/', 'https://acme.com/'],
  ['https://api.acme.com/v1', 'https://jobs.shared.example/', 'https://jobs.shared.example/'],
  ['http://127.0.0.1:8080/v1', 'http://127.0.0.1:8080/jobs', 'http://127.0.0.1:8080/jobs'],
  ['http://localhost/v1', 'http://localhost/jobs', 'http://localhost/jobs'],
])('of %s is %s', (baseUrl, text, url) => {
  expect(absoluteUrl({ slug: 'acme', baseUrl }, text, hosts)).toBe(url)
})

const refused = (baseUrl: string, text: string, at: readonly string[]) => {
  expect(() => absoluteUrl({ slug: 'acme', baseUrl }, text, at)).toThrow(
    expect.objectContaining({
      code: 'provider_unreadable',
      provider: 'acme',
      message: expect.not.stringContaining('evil'),
    }),
  )
}

test.each([
  ['https://api.acme.com', 'http://queue.acme.com/'],
  ['https://api.acme.com', 'http://api.acme.com/'],
  ['https://api.acme.com', 'https://queue.acme.com:8443/'],
  ['https://api.acme.com', 'https://acme.org/'],
  ['https://api.acme.com', 'https://api.acme.com.evil.com/'],
  ['https://api.acme.com', 'https://evilacme.com/'],
  ['https://api.acme.com', 'https://api.acme.com@evil.com/'],
  ['https://api.acme.com', 'https://me:x@api.acme.com/'],
  ['https://api.acme.com', 'https://com/'],
  ['https://api.acme.com', 'https://api.acme.com./'],
  ['https://api.acme.com', '//queue.acme.com/'],
  ['https://api.acme.com', '/jobs/1'],
  ['https://api.acme.com', ''],
  ['https://api.acme.com', 'file:///etc/passwd'],
  ['https://mine.shared.example', 'https://evil.shared.example/'],
  ['https://10.1.0.1', 'https://10.2.0.1/'],
  ['http://127.0.0.1:8080', 'http://127.0.0.1:9090/'],
  ['http://localhost', 'https://localhost/'],
  ['https://[::1]', 'https://[::2]/'],
])('of %s is not %s', (baseUrl, text) => refused(baseUrl, text, hosts))

test('is of its own origin alone where no host is named', () => {
  refused('https://api.acme.com', 'https://queue.acme.com/', [])
  refused('https://mine.azurewebsites.net', 'https://evil.azurewebsites.net/', [])
})
