//! Checks of an ensemble with the crate zookeeper, whose calls block. It has no multi, TTL, sync or TLS, and asks
//! for containers with the request of other znodes, which makes them none.

use std::sync::mpsc::{channel, Receiver};
use std::thread::sleep;
use std::time::Duration;

use checks::{ask, equal, hosts, run, text, Outcome, PATIENCE, SESSION};
use serde_json::json;
use zookeeper::{Acl, AddWatchMode, CreateMode, Permission, WatchedEvent, WatchedEventType, ZkError, ZooKeeper};

fn main() {
    run(&[
        ("connects", Some(|| connect().map(drop))),
        ("data", Some(data)),
        ("ephemeral and sequential", Some(ephemeral_and_sequential)),
        ("children", Some(children)),
        ("multi", None),
        ("watches", Some(watches)),
        ("ACLs", Some(acls)),
        ("a session ends", Some(session_ends)),
        ("a session moves", Some(session_moves)),
        ("containers", Some(containers)),
        ("TTL", None),
        ("persistent watches", Some(persistent_watches)),
    ]);
}

fn connect() -> Outcome<ZooKeeper> {
    let c = ZooKeeper::connect(&hosts(), SESSION, |_| {}).map_err(text)?;
    settled("a connection", || c.exists("/", false).is_ok())?;
    Ok(c)
}

/// Repeats a read until the client sees what others wrote, or is connected again.
fn settled(what: &str, read: impl Fn() -> bool) -> Outcome {
    const PAUSE: Duration = Duration::from_millis(50);
    for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
        if read() {
            return Ok(());
        }
        sleep(PAUSE);
    }
    Err(format!("waited {PATIENCE:?} for {what}"))
}

fn create(c: &ZooKeeper, path: &str, mode: CreateMode) -> Outcome<String> {
    c.create(path, b"x".to_vec(), Acl::open_unsafe().clone(), mode).map_err(text)
}

/// A watcher, and where its events arrive.
fn watch() -> (impl Fn(WatchedEvent) + Send, Receiver<WatchedEvent>) {
    let (heard, events) = channel();
    (move |e| drop(heard.send(e)), events)
}

fn expect(events: &Receiver<WatchedEvent>, kind: WatchedEventType, path: &str) -> Outcome {
    let e = events.recv_timeout(PATIENCE).map_err(|e| format!("{kind:?} {path}: {e}"))?;
    equal((e.event_type, e.path.as_deref()), (kind, Some(path)))
}

fn data() -> Outcome {
    let c = connect()?;
    equal(create(&c, "/data", CreateMode::Persistent)?.as_str(), "/data")?;
    equal(create(&c, "/data", CreateMode::Persistent), Err(text(ZkError::NodeExists)))?;
    equal(c.set_data("/data", b"y".to_vec(), Some(0)).map_err(text)?.version, 1)?;
    equal(c.set_data("/data", b"z".to_vec(), Some(0)).err(), Some(ZkError::BadVersion))?;
    equal(c.get_data("/data", false).map_err(text)?.0, b"y".to_vec())?;
    equal(c.delete("/data", Some(0)), Err(ZkError::BadVersion))?;
    c.delete("/data", Some(1)).map_err(text)?;
    equal(c.get_data("/data", false).err(), Some(ZkError::NoNode))?;
    equal(c.exists("/data", false).map_err(text)?.is_none(), true)
}

fn ephemeral_and_sequential() -> Outcome {
    let c = connect()?;
    create(&c, "/kinds", CreateMode::Persistent)?;
    let first = create(&c, "/kinds/s-", CreateMode::PersistentSequential)?;
    equal(first.as_str(), "/kinds/s-0000000000")?;
    let second = create(&c, "/kinds/es-", CreateMode::EphemeralSequential)?;
    equal(second.as_str(), "/kinds/es-0000000001")
}

fn children() -> Outcome {
    let c = connect()?;
    for path in ["/parent", "/parent/a", "/parent/ä"] {
        create(&c, path, CreateMode::Persistent)?;
    }
    let mut names = c.get_children("/parent", false).map_err(text)?;
    names.sort();
    equal(names, vec!["a".to_string(), "ä".to_string()])?;
    equal(c.delete("/parent", None), Err(ZkError::NotEmpty))
}

fn watches() -> Outcome {
    let (c, other) = (connect()?, connect()?);
    let ((on_data, data), (on_children, children), (on_create, created)) = (watch(), watch(), watch());
    create(&c, "/watch", CreateMode::Persistent)?;
    c.get_data_w("/watch", on_data).map_err(text)?;
    c.get_children_w("/watch", on_children).map_err(text)?;
    equal(c.exists_w("/watch/e", on_create).map_err(text)?.is_none(), true)?;
    settled("/watch", || matches!(other.exists("/watch", false), Ok(Some(_))))?;
    other.set_data("/watch", b"1".to_vec(), None).map_err(text)?;
    create(&other, "/watch/e", CreateMode::Ephemeral)?;
    expect(&data, WatchedEventType::NodeDataChanged, "/watch")?;
    expect(&children, WatchedEventType::NodeChildrenChanged, "/watch")?;
    expect(&created, WatchedEventType::NodeCreated, "/watch/e")
}

fn acls() -> Outcome {
    let (c, other) = (connect()?, connect()?);
    c.add_auth("digest", b"user:secret".to_vec()).map_err(text)?;
    create(&c, "/acl", CreateMode::Persistent)?;
    c.set_acl("/acl", vec![Acl::new(Permission::ALL, "auth", "")], None).map_err(text)?;
    equal(c.get_data("/acl", false).map_err(text)?.0, b"x".to_vec())?;
    settled("NoAuth", || other.get_data("/acl", false).err() == Some(ZkError::NoAuth))?;
    other.add_auth("digest", b"user:secret".to_vec()).map_err(text)?;
    equal(other.get_data("/acl", false).map_err(text)?.0, b"x".to_vec())
}

fn session_ends() -> Outcome {
    let (c, other) = (connect()?, connect()?);
    create(&other, "/ended", CreateMode::Ephemeral)?;
    settled("/ended", || matches!(c.exists("/ended", false), Ok(Some(_))))?;
    let (on_end, gone) = watch();
    c.exists_w("/ended", on_end).map_err(text)?;
    other.close().map_err(text)?;
    expect(&gone, WatchedEventType::NodeDeleted, "/ended")
}

/// The client does not say at which server it is: each of them dies once. Nor does it tell its session, but an
/// ephemeral names its owner.
fn session_moves() -> Outcome {
    let c = connect()?;
    let owner = |path: &str| match c.exists(path, false) {
        Ok(Some(stat)) => stat.ephemeral_owner,
        _ => 0,
    };
    create(&c, "/move", CreateMode::Ephemeral)?;
    let session = owner("/move");
    for (i, host) in hosts().split(',').enumerate() {
        ask(json!({"kill": host}))?;
        settled("the ephemeral", || owner("/move") == session)?;
        let next = format!("/move-{i}");
        create(&c, &next, CreateMode::Ephemeral)?;
        equal(owner(&next), session)?;
        ask(json!({"heal": true}))?;
    }
    Ok(())
}

fn containers() -> Outcome {
    let c = connect()?;
    create(&c, "/container", CreateMode::Container)?;
    create(&c, "/container/x", CreateMode::Persistent)?;
    let (on_end, gone) = watch();
    c.exists_w("/container", on_end).map_err(text)?;
    c.delete("/container/x", None).map_err(text)?;
    expect(&gone, WatchedEventType::NodeDeleted, "/container")
}

fn persistent_watches() -> Outcome {
    let (c, other) = (connect()?, connect()?);
    let (on_event, events) = watch();
    c.add_watch("/tree", AddWatchMode::PersistentRecursive, on_event).map_err(text)?;
    for path in ["/tree", "/tree/x"] {
        create(&other, path, CreateMode::Persistent)?;
        expect(&events, WatchedEventType::NodeCreated, path)?;
    }
    Ok(())
}
