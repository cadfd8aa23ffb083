package org.apache.zookeeper.server;

/** In the place of ZooKeeper's. */
public class NIOServerCnxnFactory extends harness.Factory { }
