package zookeeper

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// The last release of each line that the tests use, from Maven Central. Only 3.8 and 3.9 are maintained.
const (
	V34 = "3.4.14"
	V35 = "3.5.10"
	V36 = "3.6.4"
	V37 = "3.7.2"
	V38 = "3.8.6"
	V39 = "3.9.5"
)

// Oracle is the version whose behaviour zk-lite's is compared with.
const Oracle = V39

// Versions are all of them, the oldest first.
func Versions() []string { return []string{V34, V35, V36, V37, V38, V39} }

// libraries are what a server needs beside its own dependencies: its pom leaves some to Apache's archive. All versions
// log with slf4j-simple, which Flags configures.
func libraries(version string) []string {
	log := "1.7.36"
	if version == V39 {
		log = "2.0.13"
	}
	return []string{"org.slf4j:slf4j-simple:" + log, "io.dropwizard.metrics:metrics-core:4.1.12.1",
		"org.xerial.snappy:snappy-java:1.1.10.5", "commons-cli:commons-cli:1.5.0"}
}

// cache is read before a TestMain gives the commands that it tests another one.
var cache, errCache = os.UserCacheDir()

// Jars is the class path of a version of ZooKeeper. The first caller on a machine fetches it with Maven, into the
// user's cache; others need neither Maven nor network.
func Jars(version string) (string, error) {
	err := errCache
	dir := filepath.Join(cache, "zk-lite-tests", "zookeeper-"+version)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(dir), 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("a place for ZooKeeper's jars: %w", err)
	}
	// Maven's own store bears one writer; other tests may run at the same time.
	lock, err := os.OpenFile(filepath.Join(filepath.Dir(dir), "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", fmt.Errorf("a lock for ZooKeeper's jars: %w", err)
	}
	defer lock.Close() // unlocks
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	classPath, want := filepath.Join(dir, "*"), pom(version)
	if have, err := os.ReadFile(filepath.Join(dir, pomFile)); err == nil && string(have) == want {
		return classPath, nil
	}
	if err := fetch(want, dir); err != nil {
		return "", fmt.Errorf("fetching ZooKeeper %s from Maven Central (Debian: apt-get install maven): %w",
			version, err)
	}
	return classPath, nil
}

const pomFile = "pom.xml"

// pom is a project that depends on a version of ZooKeeper.
func pom(version string) string {
	var b strings.Builder
	b.WriteString(`<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>` +
		`<groupId>zk-lite</groupId><artifactId>zookeeper-of-tests</artifactId><version>1</version><dependencies>`)
	for _, jar := range append([]string{"org.apache.zookeeper:zookeeper:" + version}, libraries(version)...) {
		p := strings.Split(jar, ":")
		fmt.Fprintf(&b, "<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version>"+
			"<exclusions><exclusion><groupId>org.slf4j</groupId><artifactId>slf4j-log4j12</artifactId></exclusion>"+
			"</exclusions></dependency>\n", p[0], p[1], p[2])
	}
	b.WriteString("</dependencies></project>\n")
	return b.String()
}

// fetch fills a directory, which appears when it is complete.
func fetch(pom, dir string) error {
	part := dir + ".part"
	if err := errors.Join(os.RemoveAll(dir), os.RemoveAll(part), os.MkdirAll(part, 0o755),
		os.WriteFile(filepath.Join(part, pomFile), []byte(pom), 0o644)); err != nil {
		return err
	}
	out, err := exec.Command("mvn", "-q", "-B", "-f", filepath.Join(part, pomFile), "dependency:copy-dependencies",
		"-DoutputDirectory="+part).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return os.Rename(part, dir)
}
