package org.apache.zookeeper.server;

/** In the place of ZooKeeper's. */
public class NettyServerCnxnFactory extends harness.Factory { }
