package cli

import "github.com/spf13/cobra"

// DefaultsHelp says in the help of the program whom commands ask.
const DefaultsHelp = `Commands ask the server that --server names, ` + serverVariable + `, or the context in use
(see "context"); else ` + DefaultServer + `. It says who the others are, and where the HTTP API is. A server
listens on port 2181, and over HTTP on 127.0.0.1:8080. See also "help environment" and
"help exit-codes".`

// topics are pages of the help without a command.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{
			Use: "environment", Short: "The environment variables that commands read",
			Long: `Environment variables stand for flags that are not given:

  ` + serverVariable + `             --server: host:port,...[/chroot]; one server is enough
  ` + httpVariable + `               --http: URL,...; default: found by --server
  ` + contextVariable + `            --context: a name of "zk-lite context ls"
  ` + passwordVariable + `           the password of --auth digest:USER
  ZK_LITE_TLS                --tls: true or false
  ZK_LITE_TLS_CA             --tls-ca: a file with authorities
  ZK_LITE_TLS_CERT           --tls-cert: a file with a private key and its certificate
  ZK_LITE_TLS_PASSWORD_FILE  --tls-password-file
  ZK_LITE_TLS_SERVER_NAME    --tls-server-name

Every setting of a server has a variable, too: ZK_LITE_ and its flag, as in ZK_LITE_DATA_DIR;
ZK_LITE_SERVERS has all server.N.

"lock", "elect" and "join" set ZK_LITE_LOCK, ZK_LITE_ELECTION or ZK_LITE_MEMBER, and
ZK_LITE_FENCING_TOKEN, for the command that they run.

Files are below XDG_CONFIG_HOME (~/.config): zk-lite/contexts.json; XDG_CACHE_HOME (~/.cache):
zk-lite/servers.json; XDG_STATE_HOME (~/.local/state): zk-lite/history.`,
		},
		{
			Use: "exit-codes", Short: "What the exit codes mean",
			Long: `Exit codes:

    0  done
    1  failed; "diff": they differ; "status", "member list": there is no leader;
       "mirror status": it does not follow
    2  wrong usage
    3  no such znode, no such member
    4  conflict: exists, other version, not empty, lock held by another, too few voters
       would be left
    5  no server, connection lost; "lock": the lock was lost
    6  a write was sent and its reply lost: it may or may not have happened
    7  done, but for znodes that may not be read: they are left out with all below them,
       and named on standard error
  130  interrupted

"lock", "elect" and "join" exit with the code of their command once it has run: 127 if there
is no such program, 126 if it could not be started, 128 plus the number of a signal that ended
it.`,
		},
	}
}
