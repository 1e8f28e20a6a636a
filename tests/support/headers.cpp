// Nothing: it is here for the precompiled header that the test programs share.
