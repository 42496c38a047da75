"""Synchronisation in the language: mbarriers, rings, queues, `Turns`, persistent loops and tile orders."""
