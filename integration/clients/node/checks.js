'use strict';
// Checks of an ensemble with the npm package that the first argument names: node-zookeeper-client, or zookeeper, which
// binds the C client. The second is the connect string; what it prints, to descriptor 3, is described at the
// type message in integration/cluster.
const assert = require('node:assert/strict');
const { writeSync } = require('node:fs');
const { createInterface } = require('node:readline');
const { setTimeout: sleep } = require('node:timers/promises');

const [library, hosts] = process.argv.slice(2);
const zookeeper = require(library);
const PATIENCE = 30000; // milliseconds, for what should happen soon
const SESSION = 4000;
const PERSISTENT = 0, EPHEMERAL = 1, SEQUENTIAL = 2; // flags
const CREATED = 1, DELETED = 2, CHANGED = 3, CHILD = 4; // events
const NO_NODE = -101, NO_AUTH = -102, BAD_VERSION = -103, NODE_EXISTS = -110, NOT_EMPTY = -111;

class Absent extends Error {}

// Both clients behind one set of methods. A watch is called with the event's type and path, an error has a code.
class Pure {
  zk = zookeeper.createClient(hosts, { sessionTimeout: SESSION, spinDelay: 50 });
  connect() { return new Promise((done) => { this.zk.once('connected', done); this.zk.connect(); }); }
  close() { this.zk.close(); return new Promise((done) => this.zk.once('disconnected', done)); }
  id() { return this.zk.getSessionId().toString('hex'); }
  call(method, ...args) {
    return new Promise((done, fail) => this.zk[method](...args, (e, ...results) =>
      (e ? fail(Object.assign(e, { code: e.getCode?.() })) : done(results))));
  }
  watcher(w) { return w ? [(e) => w(e.getType(), e.path)] : []; }
  async create(path, data, flags) {
    return (await this.call('create', path, Buffer.from(data), zookeeper.ACL.OPEN_ACL_UNSAFE, flags))[0];
  }
  async get(path, w) { return (await this.call('getData', path, ...this.watcher(w)))[0]?.toString(); }
  async exists(path, w) { return !!(await this.call('exists', path, ...this.watcher(w)))[0]; }
  async children(path, w) { return (await this.call('getChildren', path, ...this.watcher(w)))[0].sort(); }
  async set(path, data, version) { return (await this.call('setData', path, Buffer.from(data), version))[0].version; }
  remove(path, version) { return this.call('remove', path, version); }
  auth(text) { this.zk.addAuthInfo('digest', Buffer.from(text)); }
  own(path) {
    return this.call('setACL', path, [new zookeeper.ACL(zookeeper.Permission.ALL, new zookeeper.Id('auth', ''))], -1);
  }
  multi(path, data, version) {
    const t = this.zk.transaction().create(path, Buffer.from('0')).setData(path, Buffer.from(data), 0);
    t.check(path, version);
    return new Promise((done, fail) => t.commit((e) => (e ? fail(Object.assign(e, { code: e.getCode() })) : done())));
  }
  container() { if (!zookeeper.CreateMode.CONTAINER) throw new Absent('no such mode'); }
  ttl() { if (!zookeeper.CreateMode.PERSISTENT_WITH_TTL) throw new Absent('no such mode'); }
}

class Binding {
  zk = new zookeeper.Promise({ connect: hosts, timeout: SESSION, debug_level: 1 });
  connect() { this.zk.init({}); return this.zk.on_connected(); }
  close() { this.zk.close(); return sleep(100); }
  id() { return this.zk.client_id; }
  async call(method, ...args) {
    try {
      return await this.zk[method](...args);
    } catch (e) {
      throw Object.assign(e, { code: parseInt(e.message, 10) });
    }
  }
  watching(method, w, path) {
    return w ? this.call('w_' + method, path, (type, state, at) => w(type, at)) : this.call(method, path, false);
  }
  create(path, data, flags, ttl) { return this.call('create', path, data, flags, ttl); }
  async get(path, w) { return (await this.watching('get', w, path))[1]?.toString(); }
  async exists(path, w) {
    try {
      return !!await this.watching('exists', w, path);
    } catch (e) {
      if (e.code !== NO_NODE) throw e;
      return false;
    }
  }
  async children(path, w) { return (await this.watching('get_children', w, path)).sort(); }
  async set(path, data, version) { return (await this.call('set', path, data, version)).version; }
  remove(path, version) { return this.call('delete_', path, version); }
  auth(text) { return new Promise((done) => this.zk.add_auth('digest', text, done)); }
  own(path) {
    return this.call('set_acl', path, -1, [{ perms: zookeeper.constants.ZOO_PERM_ALL, scheme: 'auth', auth: '' }]);
  }
  multi() { throw new Absent('no multi'); }
  container(path) { return this.create(path, '', zookeeper.constants.ZOO_CONTAINER); }
  ttl(path) { return this.create(path, '', zookeeper.constants.ZOO_PERSISTENT_WITH_TTL, 500); }
}

const clients = [];

async function connect() {
  const c = library === 'zookeeper' ? new Binding() : new Pure();
  clients.push(c);
  await within(c.connect(), 'a connection');
  return c;
}

function within(promise, what) {
  const late = sleep(PATIENCE, null, { ref: false }).then(() => { throw new Error('waited for ' + what); });
  return Promise.race([promise, late]);
}

// watch gives a callback and a promise of its event, as text.
function watch() {
  const w = {};
  w.event = new Promise((done) => { w.call = (type, path) => done(`${type} ${path}`); });
  return w;
}

async function expect(w, type, path) { assert.equal(await within(w.event, `${type} ${path}`), `${type} ${path}`); }

function fails(promise, code) { return assert.rejects(promise, { code }); }

// settled repeats a read until the client sees what others wrote, or is connected again.
async function settled(read, want) {
  for (let i = 0; i < PATIENCE / 50; i++) {
    if (await read().catch(() => undefined) === want) return;
    await sleep(50);
  }
  throw new Error(`waited for ${want}`);
}

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (message) => writeSync(3, JSON.stringify(message) + '\n');

async function ask(message) {
  say(message);
  assert.equal((await answers.next()).value, 'done');
}

const checks = {
  async connects() { assert.ok((await connect()).id()); },
  async data() {
    const c = await connect();
    assert.equal(await c.create('/data', 'x', PERSISTENT), '/data');
    await fails(c.create('/data', '', PERSISTENT), NODE_EXISTS);
    assert.equal(await c.set('/data', 'y', 0), 1);
    await fails(c.set('/data', 'z', 0), BAD_VERSION);
    assert.equal(await c.get('/data'), 'y');
    await fails(c.remove('/data', 0), BAD_VERSION);
    await c.remove('/data', 1);
    await fails(c.get('/data'), NO_NODE);
    assert.equal(await c.exists('/data'), false);
  },
  async 'ephemeral and sequential'() {
    const c = await connect();
    await c.create('/kinds', '', PERSISTENT);
    assert.equal(await c.create('/kinds/s-', '', SEQUENTIAL), '/kinds/s-0000000000');
    assert.equal(await c.create('/kinds/es-', '', EPHEMERAL | SEQUENTIAL), '/kinds/es-0000000001');
  },
  async children() {
    const c = await connect();
    for (const path of ['/parent', '/parent/a', '/parent/ä']) await c.create(path, '', PERSISTENT);
    assert.deepEqual(await c.children('/parent'), ['a', 'ä']);
    await fails(c.remove('/parent', -1), NOT_EMPTY);
  },
  async multi() {
    const c = await connect();
    await c.multi('/multi', '1', 1);
    assert.equal(await c.get('/multi'), '1');
    await fails(c.multi('/never', '1', 7), BAD_VERSION);
    assert.equal(await c.exists('/never'), false);
  },
  async watches() {
    const [c, other] = [await connect(), await connect()];
    const [data, children, missing] = [watch(), watch(), watch()];
    await c.create('/watch', '', PERSISTENT);
    await c.get('/watch', data.call);
    await c.children('/watch', children.call);
    await c.exists('/watch/e', missing.call);
    await settled(() => other.exists('/watch'), true);
    await other.set('/watch', '1', -1);
    await other.create('/watch/e', '', EPHEMERAL);
    await expect(data, CHANGED, '/watch');
    await expect(children, CHILD, '/watch');
    await expect(missing, CREATED, '/watch/e');
  },
  async ACLs() {
    const [c, other] = [await connect(), await connect()];
    await c.auth('user:secret');
    await c.create('/acl', 'mine', PERSISTENT);
    await c.own('/acl');
    assert.equal(await c.get('/acl'), 'mine');
    await settled(() => other.get('/acl').catch((e) => e.code), NO_AUTH);
    await other.auth('user:secret');
    assert.equal(await other.get('/acl'), 'mine');
  },
  async 'a session ends'() {
    const [c, other, gone] = [await connect(), await connect(), watch()];
    await other.create('/ended', '', EPHEMERAL);
    await settled(() => c.exists('/ended', gone.call), true);
    await other.close();
    await expect(gone, DELETED, '/ended');
  },
  async 'a session moves'() { // no client says at which server it is: each of them dies once
    const c = await connect();
    const id = c.id();
    await c.create('/move', '', EPHEMERAL);
    for (const kill of hosts.split(',')) {
      await ask({ kill });
      await settled(() => c.exists('/move'), true);
      assert.equal(c.id(), id);
      await ask({ heal: true });
    }
  },
  async containers() {
    const [c, gone] = [await connect(), watch()];
    await c.container('/container');
    await c.create('/container/x', '', PERSISTENT);
    await c.exists('/container', gone.call);
    await c.remove('/container/x', -1);
    await expect(gone, DELETED, '/container');
  },
  async TTL() {
    const [c, gone] = [await connect(), watch()];
    await c.ttl('/ttl');
    await c.exists('/ttl', gone.call);
    await expect(gone, DELETED, '/ttl');
  },
  async 'persistent watches'() {
    const c = await connect();
    if (!c.zk.addWatch && !c.zk.add_watch) throw new Absent('no such method');
    throw new Error('the client has them, and they are not tried here');
  },
};

(async () => {
  for (const [check, body] of Object.entries(checks)) {
    await body().then(() => say({ check, ok: true }),
      (e) => say({ check, absent: e instanceof Absent, detail: e.stack }));
    await Promise.all(clients.splice(0).map((c) => Promise.race([c.close(), sleep(500)])));
  }
  say({ end: Object.keys(checks).length });
  process.exit(0);
})();
