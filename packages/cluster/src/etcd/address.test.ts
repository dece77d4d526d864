import assert from 'node:assert/strict';
import { test } from 'node:test';
import { messageOf } from '@webdfs/base';
import { parseEtcdAddress } from './address.ts';

test('an address names members, with the usual port where none is given', () => {
  assert.deepEqual(parseEtcdAddress('etcd://10.0.0.1:2379,db-2,[::1]:1234'), {
    hosts: ['10.0.0.1:2379', 'db-2:2379', '[::1]:1234'],
    tls: false,
  });
});

test('user and password may hold any character, encoded', () => {
  assert.deepEqual(parseEtcdAddress('etcds://web%40dfs:p%3A%2Fw@etcd.example/'), {
    hosts: ['etcd.example:2379'],
    tls: true,
    user: 'web@dfs',
    password: 'p:/w',
  });
});

test('what is no address is refused, and a password is not repeated', () => {
  for (const text of [
    'http://a',
    'etcd://',
    'etcd://a:0',
    'etcd://a:99999',
    'etcd://a,,b',
    'etcd://u:se%cret@a',
    'a:2379',
  ]) {
    assert.throws(
      () => parseEtcdAddress(text),
      (error) => (error as { code?: string }).code === 'BAD_CONFIG' && !messageOf(error).includes('se%cret'),
      text,
    );
  }
});
