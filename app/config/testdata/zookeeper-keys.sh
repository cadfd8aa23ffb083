#!/bin/sh
# Prints the names of all that configures a server of ZooKeeper, one a line: the parameters of its Administrator's
# Guide, the keys of zoo.cfg, and the system properties that its source reads, without the prefix "zookeeper.". A name
# that ends in a point is the beginning of many. The tests of app/config read the list:
#
#	git clone --branch release-3.9.5 https://github.com/apache/zookeeper
#	./zookeeper-keys.sh zookeeper release-3.9.5 > zookeeper-3.9.5.keys
set -eu
repo=$1 tag=$2
main=zookeeper-server/src/main/java
export LC_ALL=C

# lines prints the lines of files that match; literals what is between quotes.
lines() { git -C "$repo" grep -hE "$1" "$tag" -- "$2"; }
literals() { grep -oE '"[^"]*"' | tr -d '"'; }
reads='(System\.getProperty|Integer\.getInteger|Boolean\.getBoolean|Long\.getLong|getKeyProperty)'

{
	# The guide: "* *name* :" and "(Java system property: **name**)".
	git -C "$repo" show "$tag:zookeeper-docs/src/main/resources/markdown/zookeeperAdmin.md" |
		sed -n '/^#### Minimum Configuration/,/^### Communication using/p' |
		grep -E '^\* +\*|Java system propert' | grep -oE '\*+[A-Za-z0-9_]+[.A-Za-z0-9_-]*[*=]' | tr -d '*=' |
		sed 's/\.$//; s/^\(server\|group\|weight\)\.x$/\1./' | grep -vx initialize # a file
	# zoo.cfg.
	lines 'key\.(equals|startsWith)\("' $main/org/apache/zookeeper/server/quorum/QuorumPeerConfig.java | literals |
		sed 's/^\(group\|weight\)$/\1./'
	lines 'String [A-Z_]+ *= *"(jvm\.pause|quorum\.auth|fsync)\.' $main | literals
	# System properties: those with ZooKeeper's prefix,
	lines '"zookeeper\.[A-Za-z0-9]' $main | grep -oE '"zookeeper\.[A-Za-z0-9_.-]+"' | tr -d '"'
	# those that are read by a literal,
	lines "$reads"'\("' $main | grep -oE "$reads"'\("[^"]*"' | literals
	# those that are read by a constant, wherever that is defined,
	lines "$reads"'\(([A-Za-z]+\.)*[A-Z_0-9]+[,)]|setProperty\([A-Z_]+,' $main |
		grep -oE '\(([A-Za-z]+\.)*[A-Z_0-9]+[,)]' | tr -d '(),' | sed 's/.*\.//' | sort -u |
		while read -r name; do lines "[^A-Z_]$name *= *\"" $main || true; done | literals
	# and those of TLS, for clients and for servers.
	lines 'getConfigPrefix\(\) \+ "' $main/org/apache/zookeeper/common/X509Util.java | literals |
		sed 's/\(.*\)/ssl.\1\nssl.quorum.\1/'
} | sed 's/^zookeeper\.//' | sort -u |
	# Not what the virtual machine says of itself, nor names of other things.
	grep -vE '^((java|os|user|line)\.[a-z]+[.a-z]*|version|configuration|ssl\.|ssl\.quorum\.|)$'
# It is read by Environment.JAAS_CONF_KEY.
echo java.security.auth.login.config
