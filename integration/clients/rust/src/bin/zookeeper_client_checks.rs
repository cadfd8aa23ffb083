//! Checks of an ensemble with the crate zookeeper-client, whose calls are futures, in Tokio.

use std::future::Future;
use std::sync::LazyLock;
use std::time::Duration;

use checks::{ask, equal, hosts, run, text, Outcome, PATIENCE, SESSION};
use serde_json::json;
use tokio::runtime::Runtime;
use zookeeper_client::{
    Acl, Acls, AddWatchMode, AuthId, Client, CreateMode, CreateOptions, Error, EventType, Permission, TlsOptions,
    WatchedEvent,
};

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("Tokio"));
const PERSISTENT: CreateOptions = CreateMode::Persistent.with_acls(Acls::anyone_all());
const EPHEMERAL: CreateOptions = CreateMode::Ephemeral.with_acls(Acls::anyone_all());

fn main() {
    run(&[
        ("connects", Some(|| RUNTIME.block_on(connect()).map(drop))),
        ("data", Some(|| RUNTIME.block_on(data()))),
        ("ephemeral and sequential", Some(|| RUNTIME.block_on(ephemeral_and_sequential()))),
        ("children", Some(|| RUNTIME.block_on(children()))),
        ("multi", Some(|| RUNTIME.block_on(multi()))),
        ("watches", Some(|| RUNTIME.block_on(watches()))),
        ("ACLs", Some(|| RUNTIME.block_on(acls()))),
        ("a session ends", Some(|| RUNTIME.block_on(session_ends()))),
        ("a session moves", Some(|| RUNTIME.block_on(session_moves()))),
        ("containers", Some(|| RUNTIME.block_on(containers()))),
        ("TTL", Some(|| RUNTIME.block_on(ttl()))),
        ("persistent watches", Some(|| RUNTIME.block_on(persistent_watches()))),
    ]);
}

/// A session, over TLS if the variable names the directory of its files.
async fn connect() -> Outcome<Client> {
    let (hosts, connector) = (hosts(), Client::connector().with_session_timeout(SESSION));
    let Ok(dir) = std::env::var("ZK_LITE_INTEROP_TLS") else {
        return within("a connection", connector.connect(&hosts)).await?.map_err(text);
    };
    let read = |name: &str| std::fs::read_to_string(format!("{dir}/{name}")).map_err(text);
    let (ca, both) = (read("ca.pem")?, read("client.pem")?); // a key and its certificate
    let tls = TlsOptions::new().with_pem_ca(&ca).and_then(|o| o.with_pem_identity(&both, &both)).map_err(text)?;
    within("a connection", connector.with_tls(tls).secure_connect(&hosts)).await?.map_err(text)
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> Outcome<T> {
    tokio::time::timeout(PATIENCE, future).await.map_err(|_| format!("waited {PATIENCE:?} for {what}"))
}

async fn create(c: &Client, path: &str, options: &CreateOptions<'_>) -> Outcome<String> {
    let (_, sequence) = c.create(path, b"x", options).await.map_err(text)?;
    Ok(if path.ends_with('-') { format!("{path}{sequence}") } else { path.to_string() })
}

async fn expect(event: impl Future<Output = WatchedEvent>, kind: EventType, path: &str) -> Outcome {
    let e = within(path, event).await?;
    equal((e.event_type, e.path.as_str()), (kind, path))
}

async fn data() -> Outcome {
    let c = connect().await?;
    create(&c, "/data", &PERSISTENT).await?;
    equal(c.create("/data", b"", &PERSISTENT).await.err(), Some(Error::NodeExists))?;
    equal(c.set_data("/data", b"y", Some(0)).await.map_err(text)?.version, 1)?;
    equal(c.set_data("/data", b"z", Some(0)).await.err(), Some(Error::BadVersion))?;
    equal(c.get_data("/data").await.map_err(text)?.0, b"y".to_vec())?;
    equal(c.delete("/data", Some(0)).await.err(), Some(Error::BadVersion))?;
    c.delete("/data", Some(1)).await.map_err(text)?;
    equal(c.get_data("/data").await.err(), Some(Error::NoNode))?;
    equal(c.check_stat("/data").await.map_err(text)?, None)
}

async fn ephemeral_and_sequential() -> Outcome {
    let c = connect().await?;
    create(&c, "/kinds", &PERSISTENT).await?;
    let sequential = CreateMode::PersistentSequential.with_acls(Acls::anyone_all());
    equal(create(&c, "/kinds/s-", &sequential).await?.as_str(), "/kinds/s-0000000000")?;
    let both = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    equal(create(&c, "/kinds/es-", &both).await?.as_str(), "/kinds/es-0000000001")
}

async fn children() -> Outcome {
    let c = connect().await?;
    for path in ["/parent", "/parent/a", "/parent/ä"] {
        create(&c, path, &PERSISTENT).await?;
    }
    let mut names = c.list_children("/parent").await.map_err(text)?;
    names.sort();
    equal(names, vec!["a".to_string(), "ä".to_string()])?;
    equal(c.delete("/parent", None).await.err(), Some(Error::NotEmpty))
}

async fn multi() -> Outcome {
    let c = connect().await?;
    for (path, version, fails) in [("/multi", 1, false), ("/never", 7, true)] {
        let mut w = c.new_multi_writer();
        w.add_create(path, b"0", &PERSISTENT).map_err(text)?;
        w.add_set_data(path, b"1", Some(0)).map_err(text)?;
        w.add_check_version(path, version).map_err(text)?;
        equal(w.commit().await.err().map(Error::from), fails.then_some(Error::BadVersion))?;
        equal(c.check_stat(path).await.map_err(text)?.is_none(), fails)?;
    }
    equal(c.get_data("/multi").await.map_err(text)?.0, b"1".to_vec())
}

async fn watches() -> Outcome {
    let (c, other) = (connect().await?, connect().await?);
    create(&c, "/watch", &PERSISTENT).await?;
    let (_, _, data) = c.get_and_watch_data("/watch").await.map_err(text)?;
    let (_, children) = c.list_and_watch_children("/watch").await.map_err(text)?;
    let (_, missing) = c.check_and_watch_stat("/watch/e").await.map_err(text)?;
    other.sync("/").await.map_err(text)?;
    other.set_data("/watch", b"1", None).await.map_err(text)?;
    create(&other, "/watch/e", &EPHEMERAL).await?;
    expect(data.changed(), EventType::NodeDataChanged, "/watch").await?;
    expect(children.changed(), EventType::NodeChildrenChanged, "/watch").await?;
    expect(missing.changed(), EventType::NodeCreated, "/watch/e").await
}

async fn acls() -> Outcome {
    let (c, other) = (connect().await?, connect().await?);
    c.auth("digest", b"user:secret").await.map_err(text)?;
    create(&c, "/acl", &PERSISTENT).await?;
    // Not AuthId::authed: over TLS that is the certificate, too, which both have.
    let user = AuthId::new("digest", "user:5w9W4eL3797Y4Wq8AcKUPPk8ha4=");
    c.set_acl("/acl", &[Acl::new(Permission::ALL, user)], None).await.map_err(text)?;
    equal(c.get_data("/acl").await.map_err(text)?.0, b"x".to_vec())?;
    other.sync("/").await.map_err(text)?;
    equal(other.get_data("/acl").await.err(), Some(Error::NoAuth))?;
    other.auth("digest", b"user:secret").await.map_err(text)?;
    equal(other.get_data("/acl").await.map_err(text)?.0, b"x".to_vec())
}

async fn session_ends() -> Outcome {
    let (c, other) = (connect().await?, connect().await?);
    create(&other, "/ended", &EPHEMERAL).await?;
    c.sync("/").await.map_err(text)?;
    let (stat, gone) = c.check_and_watch_stat("/ended").await.map_err(text)?;
    equal(stat.is_some(), true)?;
    drop(other); // which closes its session
    expect(gone.changed(), EventType::NodeDeleted, "/ended").await
}

/// The client does not say at which server it is: each of them dies once.
async fn session_moves() -> Outcome {
    let c = connect().await?;
    let id = c.session_id();
    create(&c, "/move", &EPHEMERAL).await?;
    for (i, host) in hosts().split(',').enumerate() {
        ask(json!({"kill": host}))?;
        let back = async {
            while c.check_stat("/move").await.is_err() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        within("a connection", back).await?;
        let next = format!("/move-{i}");
        create(&c, &next, &EPHEMERAL).await?;
        for path in ["/move", &next] {
            let stat = c.check_stat(path).await.map_err(text)?;
            equal(stat.map(|s| s.ephemeral_owner), Some(id.0))?;
        }
        ask(json!({"heal": true}))?;
    }
    Ok(())
}

async fn containers() -> Outcome {
    let c = connect().await?;
    create(&c, "/container", &CreateMode::Container.with_acls(Acls::anyone_all())).await?;
    create(&c, "/container/x", &PERSISTENT).await?;
    let (_, gone) = c.check_and_watch_stat("/container").await.map_err(text)?;
    c.delete("/container/x", None).await.map_err(text)?;
    expect(gone.changed(), EventType::NodeDeleted, "/container").await
}

async fn ttl() -> Outcome {
    let c = connect().await?;
    create(&c, "/ttl", &PERSISTENT.with_ttl(Duration::from_millis(500))).await?;
    let (_, gone) = c.check_and_watch_stat("/ttl").await.map_err(text)?;
    expect(gone.changed(), EventType::NodeDeleted, "/ttl").await
}

async fn persistent_watches() -> Outcome {
    let (c, other) = (connect().await?, connect().await?);
    let mut events = c.watch("/tree", AddWatchMode::PersistentRecursive).await.map_err(text)?;
    for path in ["/tree", "/tree/x"] {
        create(&other, path, &PERSISTENT).await?;
        expect(events.changed(), EventType::NodeCreated, path).await?;
    }
    Ok(())
}
