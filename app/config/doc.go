// Package config turns flags, environment variables and a zoo.cfg into the
// settings of one server.
//
// Every setting stands once in the table of table.go, with its name in zoo.cfg,
// its type, default, bounds and help text. The reader of the file, the flags
// (BindFlags), the environment and the table in docs/configuration.md all come
// from it. A flag wins over an environment variable, that over the file, and
// the file over the default.
//
// A zoo.cfg of Apache ZooKeeper 3.9 is read as it is (see properties.go for its
// syntax). A key without a meaning here is accepted with a Notice that warns of
// what its owner may miss; keys of tuning share one Notice. A key that
// asks for protection that zk-lite does not offer yet, or that changes who has a
// majority, is an error, because to start without it would be worse than not to
// start. An unknown key is an error that names the nearest known one; in the form
// of a system property, of which ZooKeeper takes any, it is a Notice.
//
// The package opens no port, creates no directory and logs nothing. It reads
// the files it is pointed at: zoo.cfg, the dynamic configuration file that one
// may name, and dataDir/myid. It starts no goroutine and keeps no state.
package config
